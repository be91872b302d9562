"""What the pages of a node say that a diagnosis uses: its facts, and a few of its metrics. Pure: text in, values out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LOCK_TIMEOUTS: Final = "kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total"
SESSIONS: Final = "kafka_server_sharesessioncache_sharesessionscount"
FETCHES: Final = "kafka_server_brokertopicmetrics_totalfetchrequests_total"
FETCH_THROTTLE: Final = "kafka_server_fetch_throttle_time"
REQUEST_THROTTLE: Final = "kafka_server_request_throttle_time"
FETCH_RATE: Final = "kafka_server_fetch_byte_rate"
WANTED: Final = (LOCK_TIMEOUTS, SESSIONS, FETCHES, FETCH_THROTTLE, REQUEST_THROTTLE, FETCH_RATE)
MOST_VALUES: Final = 100_000
"""Values of these metrics that are kept of one page."""
_LINE: Final = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """A client of a node, by client id and host, over some seconds. ``principal`` is None where the reader may not see it."""

    client_id: str
    host: str
    principal: str | None
    requests: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node. ``busy`` None: not known. ``clients``: the busiest 50 of the last seconds."""

    node_id: int
    busy: float | None = None
    clients: tuple[ClientFacts, ...] = ()
    metrics: Mapping[tuple[str, Labels], float] | None = None
    """Values by name and labels; None where the page of metrics was not read."""

    def value(self, name: str, **labels: str) -> float | None:
        """Of one series; None when the node has none."""
        return None if self.metrics is None else self.metrics.get((name, frozenset(labels.items())))


def node_facts(page: Mapping[str, Any], metrics: str | None) -> NodeFacts:
    """From the JSON of /facts and the text of /metrics. KeyError, TypeError: the page is of something else."""
    clients = page.get("clients") or {}
    return NodeFacts(
        int(page["node"]["id"]),
        (page.get("loop") or {}).get("busy"),
        tuple(
            ClientFacts(
                each["client_id"] or "", each["host"] or "", each["principal"], int(each["requests"]), int(each["bytes_out"])
            )
            for each in clients.get("busiest") or ()
        ),
        None if metrics is None else values(metrics),
    )


def values(text: str) -> dict[tuple[str, Labels], float]:
    """The wanted metrics of a page in Prometheus's text format, at most ``MOST_VALUES``."""
    found: dict[tuple[str, Labels], float] = {}
    for line in text.splitlines():
        if not line.startswith(WANTED) or len(found) >= MOST_VALUES:
            continue
        match = _LINE.fullmatch(line)
        if match is not None and match[1] in WANTED:
            labels = frozenset((name, _unescaped(value)) for name, value in _LABEL.findall(match[2] or ""))
            found[match[1], labels] = float(match[3])
    return found


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], value)
