"""What the supervisor of several processes has to know, passed to it as JSON.

The supervisor does nothing but start, watch and stop processes. Settings are read, log dirs formatted and ports bound before it
begins, by ``preparing``, whose memory is given back when the supervisor takes its place. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Started:
    """A process: its node id and the command that runs it."""

    node_id: int
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """An installation. The first process is the one that may be a controller."""

    processes: tuple[Started, ...]
    addresses: tuple[str, ...]
    """The addresses of first contact, as a person reads them."""
    sockets: Mapping[str, int]
    """Descriptors of the listening sockets that all processes accept from, by listener name."""
    http: int | None
    """As ``sockets``, of ``tidelog.http.listener``; None when it is turned off."""
    pages: str
    """The folder of the processes' own pages."""
    lock: int
    """Descriptor of the lock that holds until the last of the processes has ended."""
    own_lock: int
    """Descriptor of the supervisor's own lock."""
    folder: str
    """Where the file with the id of each process is, ``<node id>.pid``."""
    log_level: str
    log_format: str
    began: float
    """When the command was called, as ``time.perf_counter()`` says."""
    console: tuple[str, str] | None = None
    """Of the web console: the brokers' address, and where it listens. None without one."""

    def inherited(self) -> tuple[int, ...]:
        """The descriptors that every process gets."""
        return (self.lock, *self.sockets.values(), *([] if self.http is None else [self.http]))

    def to_json(self) -> str:
        """The text that ``from_json`` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """What ``to_json`` wrote."""
        values = json.loads(text)
        values["processes"] = tuple(Started(each["node_id"], tuple(each["command"])) for each in values["processes"])
        values["addresses"] = tuple(values["addresses"])
        values["console"] = None if values["console"] is None else tuple(values["console"])
        return cls(**values)
