"""How many topics, groups or resources one request may name.

A request of a megabyte may hold a million empty names. Each takes microseconds to decide and to answer, in one turn of the loop,
whether the client may do anything or not: a client without any permission could stop a node for minutes. Requests that need a
permission on the cluster as a whole are exempt, because they are refused before their entries are looked at, and so are those
between brokers.

Decoding comes before any permission, so every request of every API, Produce and Fetch too, has a limit on the elements of all its
arrays together: a hundred megabytes of empty names would take gigabytes of memory. Apache Kafka has neither limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.arrays import read_at_most

MOST_ELEMENTS: Final = 1_000_000
"""Of all arrays of a request together, nested ones too: half a second of decoding and some hundred megabytes."""
MOST_ENTRIES: Final = 100_000
"""Of each list of a request. A node of the largest clusters has as many partitions."""

R = TypeVar("R")


def decoded(read: Callable[[memoryview, int, int], R], frame: memoryview, position: int, version: int) -> R:
    """``read(frame, position, version)``; ProtocolViolation, before more is decoded, for a request with too many elements."""
    # An element has at least a byte.
    if len(frame) > MOST_ELEMENTS:
        return read_at_most(MOST_ELEMENTS, read, frame, position, version)
    return read(frame, position, version)


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
