"""A consumed record in the form that formatters use, independent of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidelog.model.ids import NO_EPOCH, NO_TIMESTAMP

if TYPE_CHECKING:
    from confluent_kafka import Message

TIMESTAMP_KINDS = {1: "CreateTime", 2: "LogAppendTime"}


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
    delivery_count: int | None = None
    """How often a share group has delivered it; None without a share group."""


def consumed(message: Message) -> Consumed:
    """A record of librdkafka's."""
    kind, stamp = message.timestamp()
    epoch = message.leader_epoch()
    return Consumed(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or []),  # type: ignore[arg-type]
        timestamp_kind=TIMESTAMP_KINDS.get(kind, ""),
        timestamp_ms=stamp if kind in TIMESTAMP_KINDS else NO_TIMESTAMP,
        leader_epoch=NO_EPOCH if epoch is None else epoch,
    )
