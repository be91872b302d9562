"""A consumed record in the form that formatters use, independent of a client."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.model.ids import NO_EPOCH, NO_TIMESTAMP


class Consumed(NamedTuple):
    """A record as it was consumed. ``timestamp_kind`` is CreateTime or LogAppendTime, the timestamp in ms or -1."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_kind: str = "CreateTime"
    timestamp_ms: int = NO_TIMESTAMP
    leader_epoch: int = NO_EPOCH
