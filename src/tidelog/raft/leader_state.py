"""LeaderState: what the leader of an epoch knows of the others: how far they have fetched, when they last did.

The high watermark is the largest offset that a majority of the voters has on disk. It counts only from the leader's first own
record on (Raft's rule: records of older epochs are committed by one of the own epoch), and it never goes back: when the voter set
changes, a smaller majority offset is simply not taken.

A leader that no majority has fetched from for one and a half fetch timeouts resigns (check-quorum): somebody else may have been
elected whom it cannot hear.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidelog.model.ids import ZERO_UUID
from tidelog.raft.voters import ReplicaKey, VoterSet

if TYPE_CHECKING:
    from tidelog.raft.membership import VoterChange
    from tidelog.records.control import Voter

OBSERVER_SESSION_MS = 300_000
MOST_OBSERVERS = 10_000
"""More than these are served, but not remembered: ids cost whoever invents them nothing."""
CAUGHT_UP_WITHIN_MS = 3_600_000
"""A replica becomes a voter only if it has fetched, and been caught up, within this time."""


@dataclass(slots=True)
class Progress:
    """One replica, as its fetches show it; times are -1 while unknown."""

    key: ReplicaKey
    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_at_last_fetch: int = -1
    acknowledged: bool = False

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.leader_end_at_last_fetch <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.leader_end_at_last_fetch = leader_end
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = offset
        self.acknowledged = True


@dataclass(slots=True)
class LeaderState:
    """Times in ms. ``begin_ms``: when BeginQuorumEpoch is next due."""

    me: ReplicaKey
    epoch_start: int
    check_quorum_timeout_ms: int
    check_quorum_ms: int
    begin_ms: int
    voters: dict[int, Progress] = field(default_factory=dict)
    observers: dict[ReplicaKey, Progress] = field(default_factory=dict)
    high_watermark: int | None = None
    fetched: dict[int, None] = field(default_factory=dict)
    """The voters that fetched since check-quorum was last satisfied."""
    change: VoterChange | None = None
    """The voter that is being added or removed: one at a time."""
    introduced: dict[int, Voter] = field(default_factory=dict)
    """What voters of a static set have said of themselves in this epoch."""
    resign_requested: bool = False

    def set_voters(self, voters: VoterSet) -> None:
        """The set counts from its append on. Whoever leaves it is an observer."""
        before = dict(self.voters)
        self.voters = {}
        for key in voters.keys:
            known = before.pop(key.id, None)
            if known is None or not known.key.is_same(key):
                if known is not None:
                    self.observers.setdefault(known.key, known)
                known = self.observers.pop(key, None) or Progress(key)
            known.key = key
            self.voters[key.id] = known
        for left in before.values():
            self.observers.setdefault(left.key, left)
        self.fetched = {each: None for each in self.fetched if each in self.voters}

    def progress(self, key: ReplicaKey) -> Progress:
        """Of a voter or an observer, new ones included."""
        voter = self.voters.get(key.id)
        if voter is not None and voter.key.is_same(key):
            return voter
        known = self.observers.get(key)
        if known is None:
            known = Progress(key)
            if len(self.observers) < MOST_OBSERVERS:
                self.observers[key] = known
        return known

    def is_voter(self, key: ReplicaKey) -> bool:
        voter = self.voters.get(key.id)
        return voter is not None and voter.key.is_same(key)

    def replica_fetched(self, key: ReplicaKey, offset: int, leader_end: int, now_ms: int) -> None:
        """A fetch from ``offset`` says: everything below is on that replica's disk."""
        self.progress(key).fetched(offset, leader_end, now_ms)
        self.heard(key, now_ms)

    def heard(self, key: ReplicaKey, now_ms: int) -> None:
        """A fetch, of records or of a snapshot: check-quorum counts it."""
        if not self.is_voter(key) or key.id == self.me.id:
            return
        self.fetched[key.id] = None
        needed = len(self.voters) // 2 + 1 - (1 if self.me.id in self.voters else 0)
        if len(self.fetched) >= needed:
            self.fetched.clear()
            self.check_quorum_ms = now_ms + self.check_quorum_timeout_ms

    def lead_alone(self, now_ms: int) -> None:
        """Without others there is nobody to hear from; whoever comes has all the time to be heard from."""
        if self._alone:
            self.check_quorum_ms = now_ms + self.check_quorum_timeout_ms

    def quorum_lost(self, now_ms: int) -> bool:
        return not self._alone and now_ms >= self.check_quorum_ms

    @property
    def _alone(self) -> bool:
        return len(self.voters) == 1 and self.me.id in self.voters

    def deadline_ms(self) -> int | None:
        """When check-quorum fails; None for a quorum of one."""
        return None if self._alone else self.check_quorum_ms

    def local_synced(self, end_offset: int) -> None:
        mine = self.voters.get(self.me.id)
        if mine is not None and mine.key.is_same(self.me):
            mine.end_offset = end_offset

    def advance(self) -> int | None:
        """The new high watermark, when it moved."""
        ends = sorted((each.end_offset for each in self.voters.values()), reverse=True)
        candidate = ends[len(ends) // 2]
        if candidate <= self.epoch_start or (self.high_watermark is not None and candidate <= self.high_watermark):
            return None
        self.high_watermark = candidate
        return candidate

    def caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        """Whether an observer is close enough to become a voter."""
        known = self.observers.get(key)
        return known is not None and known.last_caught_up_ms > 0 and known.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS

    def successors(self) -> tuple[ReplicaKey, ...]:
        """The other voters, the furthest first."""
        others = sorted((each for each in self.voters.values() if each.key.id != self.me.id), key=lambda p: -p.end_offset)
        return tuple(each.key for each in others)

    def forget_silent_observers(self, now_ms: int) -> None:
        """Those that have not fetched for long are not described any more."""
        self.observers = {key: each for key, each in self.observers.items() if now_ms - each.last_fetch_ms < OBSERVER_SESSION_MS}

    def unheard(self, now_ms: int, within_ms: int) -> tuple[ReplicaKey, ...]:
        """The voters that have to be told who leads: those that have not fetched in that time."""
        return tuple(
            each.key
            for each in self.voters.values()
            if each.key.id != self.me.id and (not each.acknowledged or now_ms - each.last_fetch_ms >= within_ms)
        )

    def directory_of(self, node_id: int) -> bytes:
        voter = self.voters.get(node_id)
        return voter.key.directory_id if voter is not None else ZERO_UUID
