"""Kinds: finds the kind of a group, or of a record in the log. One row for each protocol."""

from __future__ import annotations

from typing import Any

from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.classic.classic_kind import ClassicKind
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.consumer.consumer_kind import ConsumerKind
from tidelog.coordinator.group.consumer.consumer_records import read_consumer_key
from tidelog.coordinator.group.group_kind import Group, GroupKind
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.records import GroupRecord, UnknownKey
from tidelog.coordinator.group.share.share_group import ShareGroup
from tidelog.coordinator.group.share.share_kind import ShareKind
from tidelog.coordinator.group.share.share_records import read_share_key
from tidelog.coordinator.group.streams.streams_group import StreamsGroup
from tidelog.coordinator.group.streams.streams_kind import StreamsKind
from tidelog.coordinator.group.streams.streams_records import read_streams_key


class Kinds:
    __slots__ = ("_by_class", "_consumer", "_share", "_streams", "classic")

    def __init__(self, coordination: Coordination) -> None:
        self.classic = ClassicKind(coordination)
        """The kind of a group that JoinGroup creates."""
        self._consumer = ConsumerKind(coordination, self.classic)
        self._share = ShareKind(coordination)
        self._streams = StreamsKind(coordination, self.classic)
        self._by_class: dict[type, GroupKind[Any]] = {
            ClassicGroup: self.classic,
            ConsumerGroup: self._consumer,
            ShareGroup: self._share,
            StreamsGroup: self._streams,
        }

    def of(self, group: Group) -> GroupKind[Any]:
        """The rules for the group."""
        return self._by_class[type(group)]

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
        of_shares = read_share_key(key.type, record.key[2:])
        if of_shares is not None:
            self._share.replay(of_shares, record.value)
            return
        of_streams = read_streams_key(key.type, record.key[2:])
        if of_streams is not None:
            self._streams.replay(of_streams, record.value, loading=loading)
