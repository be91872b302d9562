"""Share sessions: which partitions a member reads from this broker, and which request of it comes next (KIP-932).

Each ShareFetch and each ShareAcknowledge of a session takes one epoch. A session belongs to the connection that opened it; a
member that comes back on another connection opens a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tidelog.model.errors import ErrorCode

OPEN, CLOSE = 0, -1
_LAST = 2_147_483_647
MOST_PLACES = 50_000
"""Partitions that one session may name: what a broker remembers for a client has to end somewhere."""


class Place(NamedTuple):
    """A partition of a topic."""

    topic_id: bytes
    partition: int


class ShareSession:
    __slots__ = ("epoch", "group_id", "member_id", "owner", "partitions")

    def __init__(self, group_id: str, member_id: str, owner: object) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.owner = owner
        """The connection."""
        self.epoch = OPEN
        """That of the last request."""
        self.partitions: dict[Place, ErrorCode | None] = {}
        """In the order in which they are read, with the error that the member knows of; None: it has heard nothing yet."""

    def add(self, places: Iterable[Place]) -> bool:
        """Reads these too. False when they are too many: then the session is as before."""
        known = ErrorCode.NONE if self.epoch == OPEN else None
        new = dict.fromkeys((place for place in places if place not in self.partitions), known)
        if len(self.partitions) + len(new) > MOST_PLACES:
            return False
        self.partitions |= new
        return True

    def answers(self, place: Place, error: ErrorCode, *, has_records: bool) -> bool:
        """Whether the response has an entry for the partition: the first one of a session has all, a later one those with records
        or an error, those that are new, and those whose error is over. It counts as told then."""
        due = self.epoch == OPEN or has_records or error is not ErrorCode.NONE or self.partitions.get(place) is not error
        if due and place in self.partitions:
            self.partitions[place] = error
        return due

    def forget(self, places: Iterable[Place]) -> None:
        """Reads these no more."""
        for place in places:
            self.partitions.pop(place, None)

    def served(self, place: Place) -> None:
        """The partition gave records: it goes to the end of the order."""
        if place in self.partitions:
            self.partitions[place] = self.partitions.pop(place)

    def rotated(self) -> list[Place]:
        """The partitions, from another one on at each request, so that none is always last."""
        places = list(self.partitions)
        start = self.epoch % len(places) if places else 0
        return places[start:] + places[:start]


class ShareSessions:
    """The sessions of one broker, at most ``slots``."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._of_group: Counter[str] = Counter()
        """Sessions by group."""
        self.evictions = 0
        """Sessions whose connection was lost."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions of all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def has_group(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return group_id in self._of_group

    def holds(self, session: ShareSession) -> bool:
        """Whether it is still its member's session."""
        return self._sessions.get((session.group_id, session.member_id)) is session

    def open(self, group_id: str, member_id: str, owner: object) -> ShareSession | ErrorCode:
        """A new session in place of the member's last one. SHARE_SESSION_LIMIT_REACHED when there are too many."""
        key = group_id, member_id
        if key not in self._sessions and len(self._sessions) >= self._slots:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        if key not in self._sessions:
            self._of_group[group_id] += 1
        self._sessions[key] = session = ShareSession(group_id, member_id, owner)
        return session

    def find(self, group_id: str, member_id: str) -> ShareSession | None:
        """The member's session."""
        return self._sessions.get((group_id, member_id))

    def next_request(self, group_id: str, member_id: str, epoch: int) -> ShareSession | ErrorCode:
        """The session, for a request with this epoch, which may be CLOSE. SHARE_SESSION_NOT_FOUND,
        INVALID_SHARE_SESSION_EPOCH."""
        session = self.find(group_id, member_id)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch != CLOSE:
            if epoch != (1 if session.epoch == _LAST else session.epoch + 1):
                return ErrorCode.INVALID_SHARE_SESSION_EPOCH
            session.epoch = epoch
        return session

    def close(self, session: ShareSession) -> bool:
        """Ends the session; False if another one has taken its place."""
        if not self.holds(session):
            return False
        del self._sessions[session.group_id, session.member_id]
        self._of_group[session.group_id] -= 1
        if not self._of_group[session.group_id]:
            del self._of_group[session.group_id]
        return True

    def clear(self) -> None:
        """Ends all sessions."""
        self._sessions.clear()
        self._of_group.clear()

    def lost(self, owner: object) -> list[ShareSession]:
        """Ends the sessions of a connection that was closed."""
        gone = [session for session in self._sessions.values() if session.owner is owner]
        for session in gone:
            self.close(session)
            self.evictions += 1
        return gone
