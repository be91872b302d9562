"""What a metadata quorum promises, looked at after each step of a simulated one. A broken promise is a ``Violation``.

Those of Kafka's own Raft simulation: epochs never go back; what is committed is on a majority's disks; one leader per epoch;
high watermarks never go back; a log that does not begin at 0 begins at a snapshot; a leader never loads a snapshot; what is
committed is the same everywhere. And: nobody votes twice in an epoch; an acknowledged record stays; whoever hears its leader
grants no pre-vote; one voter comes or goes at a time; who cannot be heard by a majority stops leading. And a voter whose log was
damaged neither leads nor votes for a log with less than it had, and announces no end that it never had (``raft_rot``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidelog.model.ids import ZERO_UUID
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from sim.raft_disk import Batch
    from sim.raft_node import SimVoter


class Violation(AssertionError):
    """A promise was broken."""


@dataclass(slots=True)
class Checkers:
    """Knowledge of the whole cluster that no replica has."""

    leaders: dict[int, int] = field(default_factory=dict)
    """Who led each epoch."""
    votes: dict[tuple[int, int], ReplicaKey] = field(default_factory=dict)
    """Whom (voter, epoch) voted for, of the answers that left."""
    committed: dict[int, Batch] = field(default_factory=dict)
    """By base offset."""
    committed_end: int = 0
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    """Base offset to content, of what a client was told is safe."""
    data_lost: bool = False
    """A voter was given an empty log: what its disk held does not count any more for a while."""

    def leads(self, voter: SimVoter, epoch: int) -> None:
        if voter.disk.log_end < voter.disk.lost_end:
            raise Violation(
                f"{voter.id} leads with {voter.disk.log_end}, and had {voter.disk.lost_end} before its log was damaged"
            )
        before = self.leaders.setdefault(epoch, voter.id)
        if before != voter.id:
            raise Violation(f"epoch {epoch} has two leaders: {before} and {voter.id}")

    def forgets_loss(self, voter: SimVoter) -> None:
        """What it had before the damage, and is committed, is on its disk again."""
        for batch in voter.disk.lost:
            known = self.committed.get(batch.base_offset)
            if known is not None and known.data == batch.data and not voter.disk.holds(batch.base_offset, batch.epoch):
                raise Violation(f"voter {voter.id} forgets its loss without the committed record at {batch.base_offset}")

    def _needs(self, voter: SimVoter, end: LogEnd) -> None:
        """The others have shown that what it lost beyond ``end`` was never committed."""
        for batch in voter.disk.lost:
            known = self.committed.get(batch.base_offset)
            if known is not None and known.data == batch.data and LogEnd(batch.epoch, batch.next_offset) > end:
                raise Violation(
                    f"voter {voter.id} votes for a log up to {end}, without the committed record at {batch.base_offset}"
                )

    def voted_for_end(self, voter: SimVoter, end: LogEnd) -> None:
        lost = voter.machine.quorum.lost
        if lost.end == voter.disk.lost_end and lost.demand <= end < lost.end:
            voter.world.count("vote with less than was lost")
            self._needs(voter, end)
        elif end < voter.disk.lost_end:
            raise Violation(f"voter {voter.id} votes for a log up to {end}, and had {voter.disk.lost_end} before the damage")

    def voted(self, voter: SimVoter, epoch: int, candidate: ReplicaKey) -> None:
        before = self.votes.setdefault((voter.id, epoch), candidate)
        if before != candidate:
            raise Violation(f"voter {voter.id} votes for {candidate.id} in epoch {epoch}, and has voted for {before.id}")

    def pre_vote_granted(self, voter: SimVoter, *, leader_heard: bool) -> None:
        if leader_heard:
            raise Violation(f"voter {voter.id} hears its leader {voter.machine.leader_id} and grants a pre-vote")

    def epoch(self, voter: SimVoter, before: int, after: int) -> None:
        if after < before:
            raise Violation(f"voter {voter.id} goes back from epoch {before} to {after}")

    def still_leads(self, voter: SimVoter, lost_at: int | None, now: int) -> None:
        if lost_at is not None and now > lost_at:
            raise Violation(f"{voter.id} leads on, though no majority has fetched from it until {lost_at}, and it is {now}")

    def loads_snapshot(self, voter: SimVoter) -> None:
        if voter.machine.is_leader:
            raise Violation(f"leader {voter.id} loads a snapshot")

    def high_watermark(self, voter: SimVoter, before: int, after: int) -> None:
        if after < before:
            raise Violation(f"the high watermark of {voter.id} goes back from {before} to {after}")
        if after > self.committed_end:
            if not voter.machine.is_leader and voter.id != self.leaders.get(voter.machine.epoch):
                raise Violation(f"{voter.id} takes {after} for committed, the leaders say {self.committed_end}")
            self._on_majority(voter, after)
        self._agrees(voter, after)

    def _on_majority(self, leader: SimVoter, high_watermark: int) -> None:
        last = next(b for b in leader.disk.log if b.base_offset < high_watermark <= b.next_offset)
        if self.leaders.get(last.epoch) != leader.id:
            raise Violation(f"leader {leader.id} commits up to epoch {last.epoch}, and no record of an epoch of its own")
        voters = leader.machine.voters
        end = LogEnd(last.epoch, high_watermark)
        holders = [
            each.id
            for each in leader.world.voters.values()
            # One that had it before it was damaged elects as if it still had it.
            if voters.find(each.key) is not None
            and (each.disk.holds(high_watermark - 1, last.epoch) or each.disk.lost_end >= end)
        ]
        if len(holders) < voters.majority and not self.data_lost:
            raise Violation(
                f"leader {leader.id} takes {high_watermark} for committed, but of the voters {voters.ids} only {holders} have it"
            )

    def _agrees(self, voter: SimVoter, high_watermark: int) -> None:
        for batch in reversed(voter.disk.log):
            if batch.next_offset > high_watermark:
                continue
            known = self.committed.get(batch.base_offset)
            if known is None:
                self.committed[batch.base_offset] = batch
            elif known.data != batch.data:
                raise Violation(
                    f"offset {batch.base_offset} is committed with epoch {known.epoch}, and {voter.id} has it with {batch.epoch}"
                )
            else:
                break
        self.committed_end = max(self.committed_end, high_watermark)

    def log_begins_at_snapshot(self, voter: SimVoter) -> None:
        disk = voter.disk
        if disk.start > 0 and not any(each.offset == disk.start for each in disk.snapshots):
            raise Violation(f"the log of {voter.id} begins at {disk.start}, where there is no snapshot")

    def one_voter_at_a_time(self, before: set[ReplicaKey], after: set[ReplicaKey]) -> None:
        if all(key.directory_id == ZERO_UUID for key in before):
            # The voters of the configuration go into the log: the same ones, with their disks.
            before = {each for each in after if ReplicaKey(each.id) in before}
        if len(before ^ after) > 1:
            raise Violation(f"the voters change from {sorted(k.id for k in before)} to {sorted(k.id for k in after)} at once")

    def voter_change_was_committed(self, voter: SimVoter, earlier_offset: int) -> None:
        """A new voter set is appended: the one before it has to be committed."""
        if earlier_offset >= voter.machine.high_watermark:
            raise Violation(
                f"leader {voter.id} changes the voters while the set at {earlier_offset} is not committed "
                f"({voter.machine.high_watermark})"
            )

    def final(self, voters: list[SimVoter]) -> None:
        """Everybody runs, nothing is lost any more: all have the same, and all that was acknowledged."""
        ends = {each.id: each.machine.high_watermark for each in voters}
        if len(set(ends.values())) != 1:
            raise Violation(f"high watermarks stay apart: {ends}")
        for voter in voters:
            self._agrees(voter, voter.machine.high_watermark)
            held = {batch.base_offset: batch.data for batch in voter.disk.log}
            for offset, data in self.acknowledged.items():
                if offset >= voter.disk.start and held.get(offset) != data:
                    raise Violation(f"the acknowledged record at {offset} is not on {voter.id}")
