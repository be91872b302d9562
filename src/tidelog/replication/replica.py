"""The leader's view of one follower: its position, and since when it lags.

A follower has caught up at the time of a fetch that asks for everything in the log at that moment. Kafka looks at every partition
of a session with every fetch. Here a quiet partition is not looked at, so the time is worked out later: while follower and leader
end at the same offset, the follower has caught up as of its last fetch, whatever that fetch named; when the leader appends, that
time is recorded (``falls_behind``).
"""

from __future__ import annotations

from tidelog.model import ids


class Caller:
    """One fetcher of a follower. Its session and the replicas that it fetched refer to it."""

    __slots__ = ("broker_epoch", "broker_id", "last_fetch_ms")

    def __init__(self, broker_id: int, broker_epoch: int, last_fetch_ms: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        """-1 before Fetch v15, which does not carry it."""
        self.last_fetch_ms = last_fetch_ms


class Replica:
    """One follower of one partition. Offsets are -1 until it fetches from this leader."""

    __slots__ = (
        "_caller",
        "_fetched_ms",
        "_leader_end_at_fetch",
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int, caught_up_ms: int) -> None:
        """``caught_up_ms``: the current time for a replica in the ISR, 0 for one outside it."""
        self.broker_id = broker_id
        self.log_end_offset = ids.NO_OFFSET
        self.log_start_offset = ids.NO_OFFSET
        self.broker_epoch = -1
        self.caught_up_ms = caught_up_ms
        self._caller: Caller | None = None
        self._fetched_ms = 0
        self._leader_end_at_fetch = ids.NO_OFFSET

    def fetched(self, offset: int, log_start_offset: int, leader_end: int, caller: Caller) -> None:
        """The follower holds everything below ``offset`` and asks for more."""
        now_ms = caller.last_fetch_ms
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self._leader_end_at_fetch >= 0:
            # It holds everything that the leader had at its previous fetch.
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self._leader_end_at_fetch = leader_end
        self._fetched_ms = now_ms
        self._caller = caller
        self.broker_epoch = caller.broker_epoch
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset

    def is_known_later(self, caller: Caller) -> bool:
        """Whether the follower has opened another session since this caller's last fetch: what a fetch of the old one that
        was parked says about the follower's position is out of date."""
        return self._caller is not None and self._caller is not caller and caller.last_fetch_ms < self._caller.last_fetch_ms

    def falls_behind(self) -> None:
        """The leader is about to append, and this follower held everything until now."""
        if self._caller is not None:
            self.caught_up_ms = max(self.caught_up_ms, self._caller.last_fetch_ms)
            self._fetched_ms = self.caught_up_ms

    def left(self, caller: Caller, leader_end: int) -> None:
        """The fetcher dropped this partition; its later fetches say nothing about it."""
        if self._caller is caller:
            if self.log_end_offset == leader_end:
                self.falls_behind()
            self._caller = None

    @property
    def is_asking(self) -> bool:
        """Whether a fetcher is known to fetch this partition."""
        return self._caller is not None

    def caught_up_within(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        """Whether it holds all of the leader's log, or did so at most ``lag_max_ms`` ago."""
        return self.log_end_offset == leader_end or now_ms - self.caught_up_ms <= lag_max_ms

    def asked_within(self, now_ms: int, lag_max_ms: int) -> bool:
        """Whether its fetcher sent any fetch within ``lag_max_ms``."""
        return self._caller is not None and now_ms - self._caller.last_fetch_ms <= lag_max_ms

    def lead_again(self, now_ms: int, *, in_sync: bool) -> None:
        """The same leader was elected again, with a new epoch."""
        self.caught_up_ms = now_ms if in_sync else 0
