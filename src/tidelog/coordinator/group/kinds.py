"""Kinds: finds the kind of a group, or of a record in the log. One row for each protocol.

The modules of share and streams groups are imported with their first group: most nodes never have one, and they are a
tenth of a node's modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.classic.classic_kind import ClassicKind
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.consumer.consumer_kind import ConsumerKind
from tidelog.coordinator.group.consumer.consumer_records import read_consumer_key
from tidelog.coordinator.group.group_kind import Group, GroupKind
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.records import GroupRecord, UnknownKey

SHARE_RECORDS, STREAMS_RECORDS = range(10, 16), range(17, 24)
"""Types of records; which of them exist, the modules of their protocols know."""


class Kinds:
    __slots__ = ("_by_class", "_consumer", "_coordination", "_replay_share", "_replay_streams", "classic")

    def __init__(self, coordination: Coordination) -> None:
        self.classic = ClassicKind(coordination)
        """The kind of a group that JoinGroup creates."""
        self._consumer = ConsumerKind(coordination, self.classic)
        self._coordination = coordination
        self._by_class: dict[type, GroupKind[Any]] = {ClassicGroup: self.classic, ConsumerGroup: self._consumer}
        self._replay_share: Callable[[int, bytes, bytes | None], None] | None = None
        self._replay_streams: Callable[[int, bytes, bytes | None, bool], None] | None = None

    def of(self, group: Group) -> GroupKind[Any]:
        """The rules for the group."""
        kind = self._by_class.get(type(group))
        if kind is None:
            self._import_share()
            self._import_streams()
            kind = self._by_class[type(group)]
        return kind

    def replay(self, key: str | UnknownKey, record: GroupRecord, now_ms: int, *, loading: bool) -> None:
        """Replays a record of a group. ``key``: the id of a classic group, or a record type of a later protocol; an unknown
        one is ignored."""
        if isinstance(key, str):
            self.classic.replay(key, record.value, now_ms, loading=loading)
            return
        of_consumers = read_consumer_key(key.type, record.key[2:])
        if of_consumers is not None:
            self._consumer.replay(of_consumers, record.value, loading=loading)
            return
        if key.type in SHARE_RECORDS:
            (self._replay_share or self._import_share())(key.type, record.key[2:], record.value)
        elif key.type in STREAMS_RECORDS:
            (self._replay_streams or self._import_streams())(key.type, record.key[2:], record.value, loading)

    def _import_share(self) -> Callable[[int, bytes, bytes | None], None]:
        if self._replay_share is not None:
            return self._replay_share
        from tidelog.coordinator.group.share.share_group import ShareGroup
        from tidelog.coordinator.group.share.share_kind import ShareKind
        from tidelog.coordinator.group.share.share_records import read_share_key

        kind = self._by_class[ShareGroup] = ShareKind(self._coordination)

        def replay(record_type: int, body: bytes, value: bytes | None) -> None:
            key = read_share_key(record_type, body)
            if key is not None:
                kind.replay(key, value)

        self._replay_share = replay
        return replay

    def _import_streams(self) -> Callable[[int, bytes, bytes | None, bool], None]:
        if self._replay_streams is not None:
            return self._replay_streams
        from tidelog.coordinator.group.streams.streams_group import StreamsGroup
        from tidelog.coordinator.group.streams.streams_kind import StreamsKind
        from tidelog.coordinator.group.streams.streams_records import read_streams_key

        kind = self._by_class[StreamsGroup] = StreamsKind(self._coordination, self.classic)

        def replay(record_type: int, body: bytes, value: bytes | None, loading: bool) -> None:
            key = read_streams_key(record_type, body)
            if key is not None:
                kind.replay(key, value, loading=loading)

        self._replay_streams = replay
        return replay
