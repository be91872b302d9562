"""Logs requests that took longer than ``tidelog.slow.request.log.ms``: the first five of each second, the others are counted.

A line names the client and says where the time went, in the phases of ``broker.request_times``. It has nothing of the request's
content.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tidelog.broker.request_times import PHASES, UNKNOWN_VERSION, SlowRequest
from tidelog.model.printable import printable
from tidelog.server.serving.violations import LONGEST_CLIENT_ID, LogLimit

log = logging.getLogger(__name__)

LONGEST_PRINCIPAL = 200
_MS = 1_000_000


class SlowRequests:
    """Those of one listener."""

    def __init__(self, listener: str, real_ms: Callable[[], int]) -> None:
        self._listener = listener
        self._real_ms = real_ms
        self._limit = LogLimit()

    def tell(self, slow: SlowRequest) -> None:
        """Logs a request, or counts it."""
        if untold := self._limit.untold(self._real_ms()):
            log.warning("listener %s: %d more slow requests were not logged", self._listener, untold)
        if self._limit.takes():
            log.warning("%s", line(slow, self._listener))


def line(slow: SlowRequest, listener: str) -> str:
    """One request on one line."""
    session = slow.session
    client_id = "no client id" if slow.client_id is None else f"client id {slow.client_id[:LONGEST_CLIENT_ID]!r}"
    phases = ", ".join(f"{phase} {_ms(taken_ns)}" for phase, taken_ns in zip(PHASES[1:], slow.times_ns[1:], strict=True))
    on_purpose = f", of which {_ms(slow.on_purpose_ns)} on purpose" if slow.on_purpose_ns else ""
    version = "" if slow.version == UNKNOWN_VERSION else f" v{slow.version}"
    text = (
        f"slow request: {slow.name}{version} of {str(session.principal)[:LONGEST_PRINCIPAL]} at {session.peer_host} "
        f"({client_id}, listener {listener}) took {_ms(slow.times_ns[0])} ms{on_purpose}: {phases}"
    )
    return printable(text)


def _ms(taken_ns: int) -> str:
    return f"{taken_ns / _MS:.1f}"
