"""A follower's fetch session with its leader (KIP-227): its id and epoch, and what the leader knows of each partition.

A request names a partition only if its position differs from the one that the session last sent, and lists those that left the
session since. With epoch 0 a request is full: it names every partition, opens a session, and closes the one whose id it carries.
Elsewhere: which partitions a request may name (``fetcher``), the leader's side (``fetch_sessions``).
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.model.ids import Uuid
from tidelog.protocol.fastpath.follower_fetch import Wanted
from tidelog.protocol.messages import fetch as wire
from tidelog.replication.followed_partition import Followed
from tidelog.replication.follower_log import Position, position

MAX_EPOCH = 0x7FFFFFFF


class FollowerSession:
    """``partition_max_bytes`` is the limit that each partition is fetched with."""

    def __init__(self, partition_max_bytes: int) -> None:
        self.id = 0
        self.epoch = 0
        self._partition_max_bytes = partition_max_bytes
        self._no_room = False
        """The leader gave us no session: each fetch names every partition and long-polls."""
        self._told: dict[Followed, Position] = {}
        """The partitions in the session, each at the position that the leader was last sent."""
        self._forgotten: dict[tuple[Uuid, int], None] = {}

    @property
    def opens(self) -> bool:
        """Whether the last or the next fetch opens a session; such a fetch is answered at once."""
        return self.epoch == 0 and not self._no_room

    def name(self, entries: Iterable[Followed]) -> list[wire.FetchTopic]:
        """Name these partitions in the next request, without those that the leader knows at their position."""
        full, told, forgotten = self.epoch == 0, self._told, self._forgotten
        topics: dict[Uuid, wire.FetchTopic] = {}
        for entry in entries:
            partition = entry.partition
            assert partition.log is not None
            at = position(partition.log)
            if not full and told.get(entry) == at:
                continue
            told[entry] = at
            forgotten.pop((partition.topic_id, partition.index), None)
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = wire.FetchTopic(topic=partition.topic, topic_id=partition.topic_id)
            topic.partitions.append(
                wire.FetchPartition(
                    partition=partition.index,
                    current_leader_epoch=entry.leader_epoch,
                    fetch_offset=at.offset,
                    last_fetched_epoch=at.last_epoch,
                    log_start_offset=at.log_start_offset,
                    partition_max_bytes=self._partition_max_bytes,
                )
            )
        return list(topics.values())

    @property
    def continues(self) -> bool:
        """Whether the next request continues the session and forgets no partition."""
        return self.epoch > 0 and not self._forgotten

    def name_plainly(self, entries: Iterable[Followed]) -> list[Wanted]:
        """``name`` as values, while the session ``continues``."""
        told, wanted = self._told, list[Wanted]()
        for entry in entries:
            partition = entry.partition
            assert partition.log is not None
            at = position(partition.log)
            if told.get(entry) != at:
                told[entry] = at
                wanted.append((partition.topic_id, partition.index, entry.leader_epoch, *at))
        return wanted

    def take_forgotten(self) -> list[wire.ForgottenTopic]:
        """The partitions that left the session since the last request; a full request lists none."""
        forgotten, self._forgotten = self._forgotten, {}
        topics: dict[Uuid, wire.ForgottenTopic] = {}
        if self.epoch:
            for topic_id, index in forgotten:
                topic = topics.setdefault(topic_id, wire.ForgottenTopic(topic_id=topic_id))
                topic.partitions.append(index)
        return list(topics.values())

    def leave(self, entry: Followed) -> None:
        """Take the partition out of the session, if it is in it."""
        if self._told.pop(entry, None) is not None:
            self._forgotten[entry.partition.topic_id, entry.partition.index] = None

    def answered(self, session_id: int) -> None:
        """The leader answered in session ``session_id``; 0: it has no room for one, and each request is full."""
        self.id = session_id
        self._no_room = session_id == 0
        if self._no_room:
            self.interrupted()
        else:
            self.epoch = self.epoch + 1 if self.epoch < MAX_EPOCH else 1

    def interrupted(self) -> None:
        """The response will not be read: the next request closes this session and opens a new one."""
        self.epoch = 0
        self._told.clear()

    def failed(self) -> None:
        """The session is lost: the next request opens a new one."""
        self.id = 0
        self.interrupted()
