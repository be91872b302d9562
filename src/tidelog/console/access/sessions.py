"""Sessions of users who logged in, in memory, and the brake on guessing passwords. Both are bounded."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

IDLE_MS: Final = 8 * 3_600_000
LONGEST_MS: Final = 24 * 3_600_000
MAX_SESSIONS: Final = 10_000
FREE_FAILURES: Final = 5
LONGEST_WAIT_MS: Final = 60_000
MAX_NAMES: Final = 10_000


@dataclass(slots=True)
class Session:
    """A login. ``csrf``: what changes have to show in a header."""

    user: str
    csrf: str = field(repr=False)
    began_ms: int
    used_ms: int
    ended: bool = False


class Sessions:
    """By token; only a digest of each token is kept."""

    def __init__(self) -> None:
        self._by_digest: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, token: str, user: str, csrf: str, now_ms: int) -> Session:
        """``token`` and ``csrf``: random texts. The session that was unused for longest makes room."""
        session = Session(user, csrf, now_ms, now_ms)
        self._by_digest[_digest(token)] = session
        while len(self._by_digest) > MAX_SESSIONS:
            self._by_digest.popitem(last=False)[1].ended = True
        return session

    def find(self, token: str | None, now_ms: int) -> Session | None:
        """The session of a cookie; None when it is unknown or over."""
        if not token:
            return None
        digest = _digest(token)
        session = self._by_digest.get(digest)
        if session is None:
            return None
        if now_ms - session.used_ms > IDLE_MS or now_ms - session.began_ms > LONGEST_MS:
            del self._by_digest[digest]
            return None
        session.used_ms = now_ms
        self._by_digest.move_to_end(digest)
        return session

    def is_over(self, session: Session | None, now_ms: int) -> bool:
        """Whether a stream that a session began has to end with it; without login it has none."""
        return session is not None and (session.ended or now_ms - session.began_ms > LONGEST_MS)

    def end(self, token: str | None) -> None:
        """The token is worth nothing any more."""
        found = self._by_digest.pop(_digest(token or ""), None)
        if found is not None:
            found.ended = True


class Guesses:
    """Failed logins by name: from the sixth on each doubles the time until the next is looked at, up to a minute."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def wait_ms(self, name: str, now_ms: int) -> int:
        """How long this name has to wait; 0: not at all."""
        failures, last_ms = self._failures.get(name, (0, 0))
        if failures < FREE_FAILURES:
            return 0
        pause = min(LONGEST_WAIT_MS, 1000 << min(failures - FREE_FAILURES, 16))
        return max(0, last_ms + pause - now_ms)

    def failed(self, name: str, now_ms: int) -> None:
        failures, _ = self._failures.pop(name, (0, 0))
        self._failures[name] = (failures + 1, now_ms)
        while len(self._failures) > MAX_NAMES:
            self._failures.popitem(last=False)

    def succeeded(self, name: str) -> None:
        self._failures.pop(name, None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
