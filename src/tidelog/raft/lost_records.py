"""What a voter demands of candidates after damage was taken out of its log, and when it may demand less (docs/adr/0023).

It may have confirmed what it lost, and a record that a majority has confirmed must not be missing on the next leader. So it
demands a log that reaches as far as its own did. Some of that was perhaps never committed, and no other voter has it: then no
candidate satisfies the demand. The candidates themselves show it. A request for a vote names the end of the asking voter's log;
once all other voters have asked in an epoch after the damage, what none of them has was never committed.

That holds for the voters of the log before the damage, and for any set that differs from them by one voter, as the next one does:
with three voters at least, each majority that this voter was needed for has one of the others. In a set of two that is sure only
where the set cannot change (kraft.version 0). A voter that has lost records itself does not ask for votes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tidelog.model.ids import ZERO_UUID
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.voters import ReplicaKey, VoterSet


class LostRecords(NamedTuple):
    """``end``: of the log before the damage. ``witnesses``: the other voters by that log, empty when they are not certain.
    ``damaged_in``: the epoch of this replica when it started without the damaged part. ``asked``: witnesses that asked for votes
    in it. ``ends``: of the logs of those that asked later, as they said last."""

    end: LogEnd = NOTHING_LOST
    witnesses: tuple[ReplicaKey, ...] = ()
    damaged_in: int = 0
    asked: frozenset[ReplicaKey] = frozenset()
    ends: tuple[tuple[ReplicaKey, LogEnd], ...] = ()

    @property
    def demand(self) -> LogEnd:
        """What a candidate's log has to reach."""
        if not all_have_asked(self.witnesses, [key for key, _ in self.ends]):
            return self.end
        return min(self.end, max(end for _, end in self.ends))

    @property
    def needs_an_epoch(self) -> bool:
        """Whether all witnesses look for a leader, in an epoch in which they may still have confirmed records to an old one."""
        return all_have_asked(self.witnesses, self.asked)

    def asked_by(self, candidate: ReplicaKey, epoch: int, end: LogEnd) -> LostRecords:
        """A candidate of ``epoch`` asks for a vote or a pre-vote; its log ends at ``end``."""
        witness = next((each for each in self.witnesses if each.is_same(candidate)), None)
        if witness is None or epoch < self.damaged_in:
            return self
        if epoch == self.damaged_in:
            return self._replace(asked=self.asked | {witness})
        others = tuple(each for each in self.ends if each[0] != witness)
        return self._replace(ends=(*others, (witness, end)))


def all_have_asked(witnesses: tuple[ReplicaKey, ...], asked: Collection[ReplicaKey]) -> bool:
    """Whether each of the witnesses, if they are certain, is in ``asked``."""
    return bool(witnesses) and all(each in asked for each in witnesses)


def witnesses(voters: VoterSet, me: ReplicaKey) -> tuple[ReplicaKey, ...]:
    """The other voters, when what none of them has cannot be committed; else none."""
    others = tuple(each for each in voters.keys if not each.is_same(me))
    if len(others) == len(voters.voters):
        return ()
    fixed = all(each.directory_id == ZERO_UUID for each in voters.keys)
    return others if len(others) >= (1 if fixed else 2) else ()
