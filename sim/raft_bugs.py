"""Bugs planted on purpose into the Raft machine: the checkers have to find each of them, or they are worth nothing.

Each is a way in which somebody has got Raft wrong. ``planted`` puts one in for the time of a ``with`` block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tidelog.raft import continuity, election, follower_fetch, lost_records, mending, voter_changes, voter_requests
from tidelog.raft.effects import HighWatermarkMoved
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.leader_state import LeaderState
from tidelog.raft.log_shape import Fit, Fitness, LogEnd, LogShape
from tidelog.raft.quorum import Quorum
from tidelog.raft.raft_log import FetchedBatch, RaftLog
from tidelog.testing.simulation.patching import Patch, patched


def _high_watermark_moves_back() -> list[Patch]:
    """A majority offset is taken as it is, also when a lagging voter has just been added; followers take what they are told."""

    def advance(self: LeaderState) -> int | None:
        ends = sorted((each.end_offset for each in self.voters.values()), reverse=True)
        candidate = ends[len(ends) // 2]
        if candidate <= self.epoch_start or candidate == self.high_watermark:
            return None
        self._high_watermark = candidate
        return candidate

    def take(self: RaftLog, offset: int) -> None:
        if offset != self.high_watermark:
            self._high_watermark = offset
            self._effects.add(HighWatermarkMoved(offset))

    return [(LeaderState, "advance", advance), (RaftLog, "raise_high_watermark", take)]


def _divergence_ignored() -> list[Patch]:
    """The leader looks at the fetcher's offset, not at its epoch."""
    honest = LogShape.fitness

    def fits(self: LogShape, offset: int, epoch: int) -> Fitness:
        found = honest(self, offset, epoch)
        if found.fit is Fit.DIVERGING and offset <= self.end_offset:
            return Fitness(Fit.VALID, LogEnd(epoch, offset))
        return found

    return [(LogShape, "fitness", fits)]


def _two_changes_at_once() -> list[Patch]:
    return [(voter_changes, "_not_now", lambda quorum: None)]


def _pre_vote_beside_a_leader() -> list[Patch]:
    return [(FollowerState, "grants", lambda self, candidate, up_to_date, pre_vote: pre_vote and up_to_date)]


def _two_votes() -> list[Patch]:
    """A vote is forgotten when the next one is asked for."""

    def grants(voted: Any, leader_id: int, candidate: Any, up_to_date: bool, pre_vote: bool) -> bool:
        return up_to_date

    def vote_for(self: Quorum, candidate: Any) -> None:
        self.amend(self.state._replace(voted=candidate))  # type: ignore[union-attr]
        self._persist(-1, candidate)

    return [(election, "_may_vote", grants), (Quorum, "vote_for", vote_for)]


def _old_epoch_committed() -> list[Patch]:
    """Records of earlier epochs are counted as committed, though nothing of the own epoch is."""

    def advance(self: LeaderState) -> int | None:
        ends = sorted((each.end_offset for each in self.voters.values()), reverse=True)
        candidate = ends[len(ends) // 2]
        if candidate < 1 or (self.high_watermark is not None and candidate <= self.high_watermark):
            return None
        self._high_watermark = candidate
        return candidate

    return [(LeaderState, "advance", advance), (Quorum, "check", lambda self: None)]


def _short_log_elected() -> list[Patch]:
    """The candidate's log is not compared."""
    honest = voter_requests.grants

    def grants(state: Any, candidate: Any, up_to_date: bool, pre_vote: bool) -> bool:
        return honest(state, candidate, True, pre_vote)

    return [(voter_requests, "grants", grants)]


def _fetch_before_sync() -> list[Patch]:
    """A follower says that it has what its disk does not have yet."""
    honest = RaftLog.append_fetched

    def append(self: RaftLog, batches: Sequence[FetchedBatch], data: bytes) -> None:
        honest(self, batches, data)
        self._shape._synced = self._shape.end_offset

    return [(RaftLog, "append_fetched", append)]


def _stale_leader_stays() -> list[Patch]:
    """A leader that nobody hears goes on leading."""
    return [(LeaderState, "quorum_lost", lambda self, now_ms: False)]


def _leader_counts_itself_unsynced() -> list[Patch]:
    def local_synced(self: LeaderState, end_offset: int) -> None:
        self._voters[self._me.id] = self._voters[self._me.id]._replace(end_offset=1 << 40)

    return [(LeaderState, "local_synced", local_synced)]


def _minority_is_enough() -> list[Patch]:
    def granted(self: election.Ballot) -> bool:
        return sum(vote is True for _, vote in self.answers) >= max(1, len(self.answers) // 2)

    return [(election.Ballot, "granted", property(granted))]


def _flipped_epoch_believed() -> list[Patch]:
    """A start believes each batch that has the right checksum."""
    return [(continuity.ContinuityCheck, "_fault", lambda self, header, batch: None)]


def _only_voter_mends_itself() -> list[Patch]:
    """A start cuts the log at the damage, whoever else may have the records."""
    return [(mending, "_refuse_what_others_cannot_mend", lambda log, damage, config, voters: None)]


def _one_shows_what_was_never_committed() -> list[Patch]:
    """A voter that lost records believes the first candidate that nothing more was committed than that one has."""

    def any_has_asked(witnesses: Any, asked: Any) -> bool:
        return any(each in asked for each in witnesses)

    return [(lost_records, "all_have_asked", any_has_asked)]


def _mended_by_any_answer() -> list[Patch]:
    """A voter that lost records takes any answer of a leader for the end of that leader's log."""
    return [(follower_fetch, "caught_up", lambda data, high_watermark, end_offset: True)]


def _voters_before_the_damage_believed() -> list[Patch]:
    """Whether others have the records is asked of the voters before the damage; a removal behind it is not looked for."""
    return [(mending, "voters_behind_damage", lambda log: []), (mending, "may_hide_voters", lambda log: False)]


MACHINE_BUGS: dict[str, Callable[[], list[Patch]]] = {
    "high watermark moved back": _high_watermark_moves_back,
    "divergence ignored": _divergence_ignored,
    "two voter changes at once": _two_changes_at_once,
    "pre-vote granted while the leader is heard": _pre_vote_beside_a_leader,
    "two votes in an epoch": _two_votes,
    "older epoch committed alone": _old_epoch_committed,
    "short log elected": _short_log_elected,
    "fetched before synced": _fetch_before_sync,
    "leader without a quorum stays": _stale_leader_stays,
    "leader counts what is not synced": _leader_counts_itself_unsynced,
    "half the votes suffice": _minority_is_enough,
    "flipped offset or epoch believed": _flipped_epoch_believed,
    "only voter mends itself": _only_voter_mends_itself,
    "one shows what was never committed": _one_shows_what_was_never_committed,
    "mended by any answer": _mended_by_any_answer,
    "voters before the damage believed": _voters_before_the_damage_believed,
}
RUNNER_BUGS = ("vote not synced", "log not synced", "lost end forgotten")
"""Those of whoever runs the machine: the simulated replica has them built in."""
ALL_BUGS = (*MACHINE_BUGS, *RUNNER_BUGS)


@contextmanager
def planted(bug: str) -> Iterator[frozenset[str]]:
    """The bug is there; what a ``World`` has to be told of it."""
    if bug in RUNNER_BUGS:
        yield frozenset((bug,))
        return
    with patched(MACHINE_BUGS[bug]()):
        yield frozenset()
