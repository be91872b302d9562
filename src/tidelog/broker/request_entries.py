"""How many topics, groups or resources one request may name.

A request of a megabyte may hold a million empty names. Each takes microseconds to decide and to answer, in one turn of the loop,
whether the client may do anything or not: a client without any permission could stop a node for minutes. Requests that need a
permission on the cluster as a whole are exempt, because they are refused before their entries are looked at, and so are those
between brokers. Apache Kafka has no such limit.

Not covered: Produce and Fetch, lists within entries, and the time of decoding, which comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from tidelog.model.errors import ProtocolViolation

MOST_ENTRIES: Final = 100_000
"""Of each list of a request. A node of the largest clusters has as many partitions."""

R = TypeVar("R")


def bounded(read: Callable[[memoryview, int, int], R]) -> Callable[[memoryview, int, int], R]:
    """``read``, with a ProtocolViolation for a request with too many entries."""

    def read_bounded(frame: memoryview, position: int, version: int) -> R:
        request = read(frame, position, version)
        # An entry has at least a byte.
        if len(frame) > MOST_ENTRIES:
            check_entries(request)
        return request

    return read_bounded


def check_entries(request: object) -> None:
    """ProtocolViolation for a request with a list of too many entries."""
    for name in type(request).__slots__:  # type: ignore[attr-defined]
        value = getattr(request, name)
        if isinstance(value, list) and len(value) > MOST_ENTRIES:
            raise ProtocolViolation(f"a request with {len(value)} {name.replace('_', ' ')}, allowed are {MOST_ENTRIES}")
