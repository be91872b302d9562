"""Kinds: finds the kind of a group, or of a record in the log. One row for each protocol.

The modules of share and streams groups are imported with their first group: most nodes never have one, and they are a
tenth of a node's modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.classic.classic_kind import ClassicKind
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.consumer.consumer_kind import ConsumerKind
from tidelog.coordinator.group.consumer.consumer_records import read_consumer_key
from tidelog.coordinator.group.group_kind import Group, GroupKind
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.records import GroupRecord, UnknownKey

if TYPE_CHECKING:
    from tidelog.coordinator.group.share.share_kind import ShareKind
    from tidelog.coordinator.group.streams.streams_kind import StreamsKind

SHARE_RECORDS, STREAMS_RECORDS = range(10, 16), range(17, 24)
"""Types of records; which of them exist, the modules of their protocols know."""


class Kinds:
    __slots__ = ("_by_class", "_consumer", "_coordination", "classic")

    def __init__(self, coordination: Coordination) -> None:
        self.classic = ClassicKind(coordination)
        """The kind of a group that JoinGroup creates."""
        self._consumer = ConsumerKind(coordination, self.classic)
        self._coordination = coordination
        self._by_class: dict[type, GroupKind[Any]] = {ClassicGroup: self.classic, ConsumerGroup: self._consumer}

    def of(self, group: Group) -> GroupKind[Any]:
        """The rules for the group."""
        kind = self._by_class.get(type(group))
        if kind is None:
            self._share()
            self._streams()
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
            self._share().replay_record(key.type, record.key[2:], record.value)
        elif key.type in STREAMS_RECORDS:
            self._streams().replay_record(key.type, record.key[2:], record.value, loading=loading)

    def _share(self) -> ShareKind:
        from tidelog.coordinator.group.share.share_group import ShareGroup
        from tidelog.coordinator.group.share.share_kind import ShareKind

        kind: Any = self._by_class.get(ShareGroup)
        if kind is None:
            kind = self._by_class[ShareGroup] = ShareKind(self._coordination)
        return kind  # type: ignore[no-any-return]

    def _streams(self) -> StreamsKind:
        from tidelog.coordinator.group.streams.streams_group import StreamsGroup
        from tidelog.coordinator.group.streams.streams_kind import StreamsKind

        kind: Any = self._by_class.get(StreamsGroup)
        if kind is None:
            kind = self._by_class[StreamsGroup] = StreamsKind(self._coordination, self.classic)
        return kind  # type: ignore[no-any-return]
