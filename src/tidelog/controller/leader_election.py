"""Which replica leads a partition: clean, preferred and unclean elections (KIP-183, KIP-460, KIP-966).

A replica in sync may lead and loses nothing; so may an eligible one while no replica is in sync. Only where
``unclean.leader.election.enable`` is set, or an operator demands it, a replica outside both leads, and records may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from tidelog.model.ids import NO_BROKER

Acceptable = Callable[[int], bool]
"""Whether a replica may lead: its broker is in service and has the replica's log dir."""


class Election(Enum):
    """How a leader is chosen."""

    ONLINE = "online"
    """The current leader if it may stay, else the first in-sync replica."""
    PREFERRED = "preferred"
    """The first replica of the assignment, if it is in sync."""
    UNCLEAN = "unclean"
    """As ONLINE; without any in-sync replica, any live replica, and records may be lost."""


class Candidates(NamedTuple):
    """A partition's replicas as an election sees them, in the order of the assignment. ``leader`` may be NO_BROKER.

    ``last_known``: the last leader of a partition that has no other replica left to lead, with ELR enabled; else empty.
    """

    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    elr: Sequence[int]
    last_known: Sequence[int]


def choose_leader(candidates: Candidates, election: Election, acceptable: Acceptable) -> tuple[int, bool]:
    """(the new leader or NO_BROKER, whether records may be lost)."""
    isr, elr = candidates.isr, candidates.elr

    def valid(replica: int) -> bool:
        in_sync = replica in isr or (not isr and replica in elr)
        return in_sync and acceptable(replica)

    line = [candidates.leader, *candidates.replicas]
    if election is Election.PREFERRED:
        line = [candidates.replicas[0], *line]
    for replica in line:
        if replica != NO_BROKER and valid(replica):
            return replica, False
    last_known = candidates.last_known
    if not isr and not elr and len(last_known) == 1 and acceptable(last_known[0]):
        return last_known[0], True
    if election is Election.UNCLEAN:
        for replica in candidates.replicas:
            if acceptable(replica):
                return replica, True
    return NO_BROKER, False
