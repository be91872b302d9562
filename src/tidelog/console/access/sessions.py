"""Sessions of users who logged in, in memory and bounded."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

IDLE_MS: Final = 8 * 3_600_000
LONGEST_MS: Final = 24 * 3_600_000
MAX_SESSIONS: Final = 10_000
MAX_ID_TOKEN: Final = 4096
"""Characters: a longer one is not kept, and the provider asks at the logout who that is."""


@dataclass(slots=True)
class Session:
    """A login. ``csrf``: what changes have to show in a header. ``until_ms``: its end in any case.

    ``roles``: what a provider's login gave; None: those of the user's entry in the file. ``id_token``: of the provider's login,
    for the logout."""

    user: str
    csrf: str = field(repr=False)
    began_ms: int
    used_ms: int
    until_ms: int
    roles: frozenset[str] | None = None
    id_token: str | None = field(default=None, repr=False)
    ended: bool = False


class Sessions:
    """By token; only a digest of each token is kept."""

    def __init__(self) -> None:
        self._by_digest: OrderedDict[bytes, Session] = OrderedDict()

    def begin(
        self,
        token: str,
        user: str,
        csrf: str,
        now_ms: int,
        *,
        until_ms: int | None = None,
        roles: frozenset[str] | None = None,
        id_token: str | None = None,
    ) -> Session:
        """``token`` and ``csrf``: random texts. ``until_ms``: an end before the usual one. The session that was unused for
        longest makes room."""
        last_ms = now_ms + LONGEST_MS
        kept = id_token if id_token is not None and len(id_token) <= MAX_ID_TOKEN else None
        session = Session(user, csrf, now_ms, now_ms, last_ms if until_ms is None else min(until_ms, last_ms), roles, kept)
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
        if now_ms - session.used_ms > IDLE_MS or now_ms > session.until_ms:
            del self._by_digest[digest]
            return None
        session.used_ms = now_ms
        self._by_digest.move_to_end(digest)
        return session

    def is_over(self, session: Session | None, now_ms: int) -> bool:
        """Whether a stream that a session began has to end with it; without login it has none."""
        return session is not None and (session.ended or now_ms > session.until_ms)

    def end(self, token: str | None) -> Session | None:
        """The token is worth nothing any more. Returns the session that ended."""
        found = self._by_digest.pop(_digest(token or ""), None)
        if found is not None:
            found.ended = True
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
