"""SharePartitions: the share partitions that this broker serves, their sessions, and the clock of their locks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from tidelog.broker.shares.dead_letter_queue import DeadLetterQueue
from tidelog.broker.shares.group_settings import GroupSettings
from tidelog.broker.shares.hosted_share import HostedShare, Persisting, Phase
from tidelog.broker.shares.ports import ShareHost
from tidelog.broker.shares.share_sessions import Place, ShareSession, ShareSessions
from tidelog.broker.shares.state_store import StateStore
from tidelog.coordinator.share.records import ShareKey
from tidelog.metadata.supported_features import SHARE_VERSION
from tidelog.metrics.latency import Latencies
from tidelog.model.errors import ErrorCode
from tidelog.replication.partition import Partition
from tidelog.replication.share.record_state import Acknowledgement

LONGEST_NAP_MS = 500
"""A lock may be taken for less time than the one that is waited for."""
_NS_IN_MS = 1_000_000
MINUTE_MS = 60_000


class ShareCounts:
    """What became of the requests of share groups since the start, for the metrics."""

    __slots__ = ("acknowledged", "expired", "load_times", "rebalances", "topics")

    def __init__(self) -> None:
        self.acknowledged: Counter[int] = Counter()
        """Records by type of acknowledgement."""
        self.expired = 0
        """Fetches whose time was over before there was enough."""
        self.load_times = Latencies()
        self.rebalances = 0
        """Heartbeats that raised the epoch of their group."""
        self.topics: dict[str, list[int]] = {}
        """ShareFetch requests of a topic, those with an error; requests that acknowledge records of it, those with an error."""

    def acknowledge(self, acks: Iterable[Acknowledgement]) -> None:
        """These were taken."""
        for ack in acks:
            if len(ack.types) == 1:
                self.acknowledged[ack.types[0]] += ack.last - ack.first + 1
            else:
                self.acknowledged.update(ack.types)

    def fetched(self, topic: str, *, failed: bool) -> None:
        """A ShareFetch for this topic was answered."""
        self._count(topic, 0, failed)

    def answered(self, topic: str, *, failed: bool) -> None:
        """Acknowledgements of records of this topic were answered."""
        self._count(topic, 2, failed)

    def _count(self, topic: str, at: int, failed: bool) -> None:
        counts = self.topics.setdefault(topic, [0, 0, 0, 0])
        counts[at] += 1
        counts[at + 1] += failed

    def loaded(self, took_ms: int, now_ms: int) -> None:
        """A share partition was loaded."""
        self.load_times.record(took_ms * _NS_IN_MS, now_ms // MINUTE_MS)


class SharePartitions:
    def __init__(self, broker: ShareHost) -> None:
        self._broker = broker
        self._hosted: dict[ShareKey, HostedShare] = {}
        self._ticks = False
        self.store = StateStore(broker)
        self.settings = GroupSettings(broker)
        self.dead_letters = DeadLetterQueue(broker, self.settings)
        self.sessions = ShareSessions(broker.config.group_share_max_share_sessions)
        self.counts = ShareCounts()

    def __iter__(self) -> Iterator[HostedShare]:
        return iter(self._hosted.values())

    def find(self, group_id: str, place: Place) -> HostedShare | None:
        """The share partition, if it has been fetched from under the current leadership."""
        hosted = self._hosted.get(ShareKey(group_id, *place))
        if hosted is not None and not hosted.is_current:
            self._drop(hosted, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return None
        return hosted

    def serve(self, group_id: str, place: Place, partition: Partition) -> HostedShare:
        """The share partition, loading if this is its first fetch, or if it was fenced. One whose load failed is returned once
        more, for its error."""
        hosted = self.find(group_id, place)
        if hosted is None or (hosted.phase is Phase.GONE and hosted.was_active):
            key = ShareKey(group_id, *place)
            hosted = self._hosted[key] = HostedShare(key, partition, self.store, self._broker.runtime, self.settings)
            hosted.bury = partial(self.dead_letters.write, group_id, partition)
            hosted.on_loaded = self._loaded
            hosted.on_locked = self.acquired
            hosted.on_idle = partial(self._look_at, hosted)
            self._broker.runtime.spawn(hosted.load(), f"loading {key.text}")
        elif hosted.phase is Phase.GONE:
            del self._hosted[hosted.key]
        return hosted

    def _loaded(self, took_ms: int) -> None:
        self.counts.loaded(took_ms, self._broker.runtime.even_ms())

    def _drop(self, hosted: HostedShare, error: ErrorCode) -> None:
        if self._hosted.get(hosted.key) is hosted:
            del self._hosted[hosted.key]
        hosted.end(error)

    def follow(self) -> None:
        """The metadata changed: leaders may have moved, and share groups may have been turned off."""
        if self._hosted and self._broker.image.features.get(SHARE_VERSION, 0) < 1:
            self.sessions.clear()
            for hosted in list(self):
                self._drop(hosted, ErrorCode.UNSUPPORTED_VERSION)
        for hosted in [each for each in self if not each.is_current]:
            self._drop(hosted, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # -- sessions ------------------------------------------------------------------------------------------------------------

    def leave(self, session: ShareSession) -> list[Persisting]:
        """The session has ended: what its member holds is released. The group's last session takes its share partitions along."""
        places: Iterable[Place] = session.partitions
        if len(session.partitions) > len(self._hosted):
            # A session may name many partitions that are not here.
            group_id, named = session.group_id, session.partitions
            here = (Place(*key[1:]) for key in self._hosted if key.group_id == group_id)
            places = [place for place in here if place in named]
        released = self.release(session.group_id, session.member_id, places)
        if not self.sessions.has_group(session.group_id):
            for hosted in [each for each in self if each.key.group_id == session.group_id]:
                self._look_at(hosted)
        return released

    def release(self, group_id: str, member_id: str, places: Iterable[Place]) -> list[Persisting]:
        """Releases what the member holds in these partitions."""
        found = [self.find(group_id, place) for place in places]
        released = [hosted.release(member_id) for hosted in found if hosted is not None]
        return [each for each in released if each is not None]

    def _look_at(self, hosted: HostedShare) -> None:
        """Drops it if no session of its group is left, and nothing is being persisted: what is on its way belongs to the state
        that the next one loads."""
        if hosted.is_idle and not self.sessions.has_group(hosted.key.group_id):
            self._drop(hosted, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def lost(self, owner: object) -> None:
        """A connection was closed."""
        for session in self.sessions.lost(owner):
            self.leave(session)

    # -- time ----------------------------------------------------------------------------------------------------------------

    def acquired(self) -> None:
        """Records were acquired: their locks will time out."""
        if not self._ticks:
            self._ticks = True
            self._broker.runtime.spawn(self._tick(), "locks of share groups")

    async def _tick(self) -> None:
        runtime = self._broker.runtime
        try:
            while True:
                deadlines = [each.machine.next_deadline() for each in self if each.phase is Phase.ACTIVE]
                soonest_ms = min(deadlines, default=1 << 62)
                if soonest_ms == 1 << 62:
                    return
                nap_ms = soonest_ms - runtime.even_ms()
                if nap_ms > 0:
                    await runtime.sleep(min(nap_ms, LONGEST_NAP_MS) / 1000)
                for hosted in list(self):
                    hosted.expire()
        finally:
            self._ticks = False
