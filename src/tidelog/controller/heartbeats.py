"""Which broker processes are alive: heartbeat sessions (KIP-631). Soft state of the active controller.

A session belongs to a registration, (broker id, broker epoch), fenced or not. It ends by timeout, by a new registration, or when
the process was allowed to stop. A new controller does not know which brokers are alive, so every unfenced broker gets one full
session from the first tick. Time is the controller's monotonic clock, passed to ``tick``. After a stall it advances by at most
half a session, because heartbeats that arrived meanwhile have not been read yet.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.metadata.image import BrokerImage

Session = tuple[int, int]
"""(broker id, broker epoch)."""

NEVER = 2**63 - 1
"""An offset that no log reaches."""


class BrokerHeartbeats:
    """``timeout_ms`` is ``broker.session.timeout.ms``."""

    def __init__(self, brokers: Iterable[BrokerImage], *, own_id: int, timeout_ms: int) -> None:
        """``own_id`` is this node's id. A broker process with that id that has not sent a heartbeat is dead: this process
        holds the locks of its log dirs."""
        self.timeout_ms = timeout_ms
        self._clock_ms = 0
        self._steady_ms: int | None = None
        self._contacts: dict[Session, int] = {}
        """When each session was last refreshed, oldest first."""
        self._offsets: dict[int, int] = {}
        self._shutdown_offsets: dict[int, int] = {}
        self._giving_away: int | None = None
        self._ends: dict[int, str] = {}
        for broker in brokers:
            if not broker.fenced and broker.id != own_id:
                self._contacts[broker.id, broker.epoch] = 0

    def advance(self, steady_ms: int) -> None:
        """Advances the monotonic clock."""
        if self._steady_ms is not None:
            self._clock_ms += min(max(steady_ms - self._steady_ms, 0), max(self.timeout_ms // 2, 1))
        self._steady_ms = steady_ms

    def heard(self, broker_id: int, epoch: int, metadata_offset: int) -> None:
        """Records a heartbeat of a registered process that has applied the metadata log up to ``metadata_offset``."""
        self._contacts.pop((broker_id, epoch), None)
        self._ends.pop(broker_id, None)
        self._contacts[broker_id, epoch] = self._clock_ms
        self._offsets[broker_id] = metadata_offset

    def has_session(self, broker_id: int, epoch: int) -> bool:
        """Whether the process of this registration counts as alive."""
        contact_ms = self._contacts.get((broker_id, epoch))
        return contact_ms is not None and self._clock_ms - contact_ms <= self.timeout_ms

    def end(self, broker_id: int, why: str | None = None) -> None:
        """Forgets the broker: it stopped cleanly, was unregistered, or has a new process."""
        for session in [each for each in self._contacts if each[0] == broker_id]:
            del self._contacts[session]
        self._offsets.pop(broker_id, None)
        self._shutdown_offsets.pop(broker_id, None)
        self._ends.pop(broker_id, None)
        if why is not None:
            self._ends[broker_id] = why

    def gone(self, broker_id: int, epoch: int) -> None:
        """Ends the session at once, because the process is known to be dead."""
        session = broker_id, epoch
        if session in self._contacts:
            del self._contacts[session]
            self._ends[broker_id] = "its process is gone"
            self._contacts = {session: self._clock_ms - self.timeout_ms - 1, **self._contacts}

    def take_expired(self) -> Session | None:
        """Removes and returns the oldest session if it has expired."""
        for session, contact_ms in self._contacts.items():
            if self._clock_ms - contact_ms <= self.timeout_ms:
                return None
            del self._contacts[session]
            self._ends.setdefault(session[0], f"no heartbeat for {(self._clock_ms - contact_ms) / 1000:.1f} s")
            self.fenced(session[0])
            return session
        return None

    def why_ended(self, broker_id: int) -> str | None:
        """Why the broker's last session expired, for the log; None after a heartbeat."""
        return self._ends.get(broker_id)

    # controlled shutdown

    def fenced(self, broker_id: int) -> None:
        """A fenced broker is no longer shutting down; it may stop at once."""
        self._shutdown_offsets.pop(broker_id, None)

    def shutting_down(self, broker_id: int) -> bool:
        """Whether it is handing over its leaderships."""
        return broker_id in self._shutdown_offsets

    def shut_down_at(self, broker_id: int, offset: int) -> None:
        """The broker may stop once every active broker has applied ``offset``; the first offset counts."""
        self._shutdown_offsets.setdefault(broker_id, offset)

    def gives_away(self, broker_id: int) -> None:
        """More of its leaderships move with the records being appended; their offset replaces the one set before."""
        self._giving_away = broker_id

    def appended(self, offset: int) -> None:
        """The records decided last end at ``offset``."""
        if self._giving_away is not None:
            self._shutdown_offsets[self._giving_away] = offset
            self._giving_away = None

    def may_stop(self, broker_id: int, active: Iterable[int]) -> bool:
        """Whether all remaining brokers know that this one leads nothing."""
        others = (self._offsets.get(other, -1) for other in active if other != broker_id)
        return self._shutdown_offsets[broker_id] <= min(others, default=NEVER)
