"""Logins that have begun and not returned: what binds the way to the provider and back to one browser.

The browser keeps a ticket, sealed under a key of this process; ``state``, ``nonce`` and the PKCE verifier are derived from it
under the same key. So the console keeps nothing for logins that never return, however many begin.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

LONGEST_MS: Final = 600_000
"""From the first redirect until the browser is back."""
MAX_USED: Final = 10_000
MAX_PLACE: Final = 1000
_PLACE: Final = re.compile(r"[A-Za-z0-9][!-\[\]-~]*")
_SEALED: Final = re.compile(r"[A-Za-z0-9_-]{16,64}\.[0-9]{1,16}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Ticket:
    """One login. ``place``: the page to show afterwards, relative to the console's base."""

    sealed: str = field(repr=False)
    place: str
    began_ms: int
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)

    @property
    def challenge(self) -> str:
        """Of PKCE with S256 (RFC 7636)."""
        return _text(hashlib.sha256(self.verifier.encode()).digest())


class Tickets:
    """Makes tickets, and opens each once."""

    def __init__(self, key: bytes) -> None:
        """``key``: 32 random bytes."""
        self._key = key
        self._used: OrderedDict[bytes, None] = OrderedDict()

    def begin(self, token: str, place: str, now_ms: int) -> Ticket:
        """``token``: a random text of 16 to 64 characters of base64. ``place``: as ``safe_place`` gives it."""
        payload = f"{token}.{now_ms}.{_text(place.encode())}"
        return self._ticket(payload, place, now_ms)

    def open(self, sealed: str | None, now_ms: int) -> Ticket | None:
        """The ticket that a browser has kept; None when it is none of ours, too old, or was used."""
        if sealed is None or not _SEALED.fullmatch(sealed):
            return None
        payload, _, seal = sealed.rpartition(".")
        if not hmac.compare_digest(seal, self._derived("seal", payload)) or self._mark(sealed) in self._used:
            return None
        _, began, place = payload.split(".")
        began_ms = int(began)
        if not began_ms <= now_ms <= began_ms + LONGEST_MS:
            return None
        return self._ticket(payload, base64.urlsafe_b64decode(place + "=" * (-len(place) % 4)).decode(), began_ms)

    def use(self, ticket: Ticket) -> None:
        """It cannot be opened again."""
        self._used[self._mark(ticket.sealed)] = None
        if len(self._used) > MAX_USED:
            self._used.popitem(last=False)

    def _ticket(self, payload: str, place: str, began_ms: int) -> Ticket:
        derived = {name: self._derived(name, payload) for name in ("seal", "state", "nonce", "verifier")}
        sealed = f"{payload}.{derived.pop('seal')}"
        return Ticket(sealed, place, began_ms, **derived)

    def _derived(self, what: str, payload: str) -> str:
        return _text(hmac.digest(self._key, f"{what}:{payload}".encode(), "sha256"))

    def _mark(self, sealed: str) -> bytes:
        return hashlib.sha256(sealed.encode()).digest()


def safe_place(given: str) -> str:
    """A page of the console, relative to its base; the first page for anything that could lead elsewhere."""
    path = unquote(given.partition("?")[0].partition("#")[0])
    if len(given) > MAX_PLACE or not _PLACE.fullmatch(given) or "\\" in path or ":" in path.partition("/")[0]:
        return ""
    if path.startswith("api/") or any(step in (".", "..", "") for step in path.rstrip("/").split("/")):
        return ""
    return given


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
