"""Leadership: a leader's state of its followers, and the ISR change that it has asked for (KIP-497).

A change is assumed with its cautious outcome until the controller answers: the maximal ISR holds the replicas of the ISR in force
and those to be added. Fields are plain for fast reads; only the methods here write them, and a test looks for other writers.
Which change to ask for: ``isr_and_high_watermark``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.replication.replica import Caller, Replica


class Leadership:
    """The followers of a partition with several replicas, for as long as this broker leads. Times are of the even clock."""

    __slots__ = ("maximal_isr", "pending", "quiet", "replicas")

    def __init__(self, followers: Sequence[int], isr: Sequence[int], even_ms: int) -> None:
        self.replicas = {each: Replica(each, even_ms if each in isr else 0) for each in followers}
        self.pending: tuple[int, ...] | None = None
        """The ISR requested from the controller."""
        self.maximal_isr = frozenset(isr)
        self.quiet = False
        """A follower may hold the whole log: the next append records until when it did."""

    def assign(self, followers: Sequence[int], isr: Sequence[int], even_ms: int, *, elected: bool) -> None:
        """The controller decided on these followers and this ISR, which settles a pending change. ``elected``: this leader was
        elected again, with a new epoch."""
        if self.replicas.keys() != set(followers):
            self.replicas = {each: self.replicas.get(each) or Replica(each, 0) for each in followers}
        self.settle(isr)
        if elected:
            for replica in self.replicas.values():
                replica.lead_again(even_ms, in_sync=replica.broker_id in isr)

    def settle(self, isr: Sequence[int]) -> None:
        """Drop the pending change; ``isr`` is in force."""
        self.pending = None
        self.maximal_isr = frozenset(isr)

    def ask(self, isr: tuple[int, ...]) -> None:
        """``isr`` is requested: replicas to be added count at once, those to be removed until the controller agrees."""
        self.pending = isr
        self.maximal_isr = self.maximal_isr.union(isr)

    def appending(self, old_end: int) -> None:
        """The log end moves on from ``old_end``."""
        self.quiet = False
        for replica in self.replicas.values():
            if replica.log_end_offset == old_end:
                replica.falls_behind()

    def fetched(self, replica: Replica, offset: int, log_start_offset: int, leader_end: int, caller: Caller) -> None:
        """A follower fetches from ``offset``, so it holds everything below; a parked fetch of a session that it lost says
        nothing."""
        if replica.is_known_later(caller):
            return
        replica.fetched(offset, log_start_offset, leader_end, caller)
        if offset >= leader_end:
            self.quiet = True

    def left(self, caller: Caller, leader_end: int) -> None:
        """The fetch session of ``caller`` dropped the partition: its log dir there may have failed."""
        replica = self.replicas.get(caller.broker_id)
        if replica is not None:
            replica.left(caller, leader_end)
