"""LeaderState: a leader's knowledge of the other replicas: how far they have fetched, and when.

The high watermark is the largest offset that a majority of the voters has on disk. It is valid only from the leader's first own
record on (Raft: records of older epochs are committed by one of the current epoch), and it never decreases: when the voter set
changes, a smaller majority offset is ignored.

A leader that no majority has fetched from for one and a half fetch timeouts resigns (check-quorum), because another leader may
have been elected that it cannot hear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidelog.raft.effects import Inbound
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Voter

OBSERVER_SESSION_MS = 300_000
MOST_OBSERVERS = 10_000
"""Further observers are served but not tracked, because a client can invent any number of ids."""
CAUGHT_UP_WITHIN_MS = 3_600_000
"""A replica becomes a voter only if it has fetched, and been caught up, within this time."""


class Progress(NamedTuple):
    """The progress of one replica, from its fetches; times are -1 while unknown."""

    key: ReplicaKey
    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_at_last_fetch: int = -1
    acknowledged: bool = False

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> Progress:
        """After a fetch from ``offset``, when the leader's log ended at ``leader_end``."""
        caught_up_ms = self.last_caught_up_ms
        if offset >= leader_end:
            caught_up_ms = max(caught_up_ms, now_ms)
        elif 0 < self.leader_end_at_last_fetch <= offset:
            caught_up_ms = max(caught_up_ms, self.last_fetch_ms)
        return Progress(self.key, offset, max(self.last_fetch_ms, now_ms), caught_up_ms, leader_end, True)

    def caught_up(self, now_ms: int) -> bool:
        """Whether an observer is close enough to become a voter."""
        return self.last_caught_up_ms > 0 and self.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS


class VoterChange(NamedTuple):
    """A voter being added or removed. ``offset``: of its record, -1 while the new voter is asked for its versions.
    ``inbound``: the waiting request, None once it is answered."""

    inbound: Inbound | None
    answer: Callable[..., Any]
    deadline_ms: int
    voter: Voter | None = None
    request_id: int = 0
    offset: int = -1
    answered_on_append: bool = False

    def is_committed(self, high_watermark: int) -> bool:
        return 0 <= self.offset < high_watermark


class LeaderState:
    """Times in ms."""

    __slots__ = (
        "_begin_ms",
        "_change",
        "_check_quorum_ms",
        "_check_quorum_timeout_ms",
        "_epoch_start",
        "_fetched",
        "_high_watermark",
        "_introduced",
        "_me",
        "_observers",
        "_resign_requested",
        "_voters",
    )

    def __init__(self, me: ReplicaKey, epoch_start: int, check_quorum_timeout_ms: int, now_ms: int) -> None:
        self._me = me
        self._epoch_start = epoch_start
        self._check_quorum_timeout_ms = check_quorum_timeout_ms
        self._check_quorum_ms = now_ms + check_quorum_timeout_ms
        self._begin_ms = now_ms
        self._voters: dict[int, Progress] = {}
        self._observers: dict[ReplicaKey, Progress] = {}
        self._high_watermark: int | None = None
        self._fetched: dict[int, None] = {}
        """The voters that fetched since check-quorum was last satisfied."""
        self._change: VoterChange | None = None
        self._introduced: dict[int, Voter] = {}
        self._resign_requested = False

    # what it knows

    @property
    def epoch_start(self) -> int:
        return self._epoch_start

    @property
    def high_watermark(self) -> int | None:
        """None until a record of this epoch is committed."""
        return self._high_watermark

    @property
    def voters(self) -> Mapping[int, Progress]:
        return self._voters

    @property
    def observers(self) -> Mapping[ReplicaKey, Progress]:
        return self._observers

    @property
    def begin_ms(self) -> int:
        """When BeginQuorumEpoch is next due."""
        return self._begin_ms

    @property
    def change(self) -> VoterChange | None:
        """The voter that is being added or removed: one at a time."""
        return self._change

    @property
    def introduced(self) -> Mapping[int, Voter]:
        """What voters of a static set have reported about themselves in this epoch."""
        return self._introduced

    @property
    def resign_requested(self) -> bool:
        return self._resign_requested

    # what becomes of it

    def set_change(self, change: VoterChange | None) -> None:
        """Sets a change that begins or has advanced, or (None) ends it."""
        self._change = change

    def introduce(self, voter: Voter) -> None:
        """A voter of a static set reports its endpoints and versions."""
        self._introduced[voter.voter_id] = voter

    def request_resignation(self) -> None:
        """Another replica should lead."""
        self._resign_requested = True

    def acknowledged_by(self, node_id: int) -> None:
        """The voter knows the leader."""
        if node_id in self._voters:
            self._voters[node_id] = self._voters[node_id]._replace(acknowledged=True)

    def begun(self, next_ms: int) -> None:
        """BeginQuorumEpoch was sent; the next one is due at ``next_ms``."""
        self._begin_ms = next_ms

    def set_voters(self, voters: VoterSet) -> None:
        """The set takes effect with its append. A removed voter becomes an observer."""
        before, self._voters = self._voters, {}
        for key in voters.keys:
            known = before.pop(key.id, None)
            if known is None or not known.key.is_same(key):
                if known is not None:
                    self._observers.setdefault(known.key, known)
                known = self._observers.pop(key, None) or Progress(key)
            self._voters[key.id] = known._replace(key=key)
        for left in before.values():
            self._observers.setdefault(left.key, left)
        self._fetched = {each: None for each in self._fetched if each in self._voters}

    def is_voter(self, key: ReplicaKey) -> bool:
        voter = self._voters.get(key.id)
        return voter is not None and voter.key.is_same(key)

    def replica_fetched(self, key: ReplicaKey, offset: int, leader_end: int, now_ms: int) -> None:
        """A fetch from ``offset`` confirms that everything below is on that replica's disk."""
        voter = self._voters.get(key.id)
        if voter is not None and voter.key.is_same(key):
            self._voters[key.id] = voter.fetched(offset, leader_end, now_ms)
        elif key in self._observers or len(self._observers) < MOST_OBSERVERS:
            self._observers[key] = self._observers.get(key, Progress(key)).fetched(offset, leader_end, now_ms)
        self.heard(key, now_ms)

    def heard(self, key: ReplicaKey, now_ms: int) -> None:
        """A fetch of records or of a snapshot counts for check-quorum."""
        if not self.is_voter(key) or key.id == self._me.id:
            return
        self._fetched[key.id] = None
        needed = len(self._voters) // 2 + 1 - (1 if self._me.id in self._voters else 0)
        if len(self._fetched) >= needed:
            self._fetched.clear()
            self._check_quorum_ms = now_ms + self._check_quorum_timeout_ms

    def lead_alone(self, now_ms: int) -> None:
        """Without other voters check-quorum cannot fail; a voter that joins gets the full time."""
        if self._alone:
            self._check_quorum_ms = now_ms + self._check_quorum_timeout_ms

    def quorum_lost(self, now_ms: int) -> bool:
        return not self._alone and now_ms >= self._check_quorum_ms

    @property
    def _alone(self) -> bool:
        return len(self._voters) == 1 and self._me.id in self._voters

    def deadline_ms(self) -> int | None:
        """When check-quorum fails; None for a quorum of one."""
        return None if self._alone else self._check_quorum_ms

    def local_synced(self, end_offset: int) -> None:
        """This replica's own disk has everything below."""
        mine = self._voters.get(self._me.id)
        if mine is not None and mine.key.is_same(self._me):
            self._voters[self._me.id] = mine._replace(end_offset=end_offset)

    def advance(self) -> int | None:
        """Recomputes the high watermark; returns it when it moved."""
        ends = sorted((each.end_offset for each in self._voters.values()), reverse=True)
        candidate = ends[len(ends) // 2]
        if candidate <= self._epoch_start or (self._high_watermark is not None and candidate <= self._high_watermark):
            return None
        self._high_watermark = candidate
        return candidate

    def forget_silent_observers(self, now_ms: int) -> None:
        """Drops observers that have not fetched for long from the description."""
        self._observers = {
            key: each for key, each in self._observers.items() if now_ms - each.last_fetch_ms < OBSERVER_SESSION_MS
        }


def successors(leader: LeaderState, me: ReplicaKey) -> tuple[ReplicaKey, ...]:
    """The other voters, the most complete log first."""
    others = sorted((each for each in leader.voters.values() if each.key.id != me.id), key=lambda voter: -voter.end_offset)
    return tuple(each.key for each in others)


def unheard(leader: LeaderState, me: ReplicaKey, now_ms: int, within_ms: int) -> tuple[ReplicaKey, ...]:
    """The voters to send BeginQuorumEpoch to: those that have not fetched for ``within_ms``."""
    return tuple(
        each.key
        for each in leader.voters.values()
        if each.key.id != me.id and (not each.acknowledged or now_ms - each.last_fetch_ms >= within_ms)
    )
