"""Logins beside the loop: passwords are hashed in threads of their own, few at a time, so that requests of users who are known
and threads that parse schemas do not wait behind wrong passwords.

One login that several connections send at once is hashed once. When too many wait, the next one is refused until there is
room. Wrong passwords from one address, or for one name, slow further ones down (``tidelog.http.guesses``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tidelog.http.guesses import Guesses
from tidelog.registry.errors import RegistryError
from tidelog.registry.serving.users import User, Users, credentials

THREADS = 2
"""Each needs 16 MiB while it hashes."""
MAX_WAITING = 64


class Logins:
    """On one loop. ``now_ms``: the wall clock. ``close`` when no more requests come."""

    def __init__(self, users: Users, now_ms: Callable[[], int]) -> None:
        self._users, self._now_ms = users, now_ms
        self._guesses = Guesses()
        self._threads = ThreadPoolExecutor(THREADS, "registry-login")
        self._waiting: dict[bytes, tuple[asyncio.Future[User | None], str]] = {}

    async def admitted(self, header: bytes, address: str) -> User | None:
        """The user of an Authorization header from an address; None for a wrong one, and for none.

        429 after too many wrong passwords, 503 when too many logins wait.
        """
        known = self._users.known(header)
        given = credentials(header)
        if known is not None or given is None:
            return known
        name, key = given[0], self._users.digest(header)
        if key not in self._waiting:
            self._begin(key, header, name, address)
        found, asked_from = self._waiting[key]
        user = await asyncio.shield(found)
        if user is not None and self._users.known(header) is None:
            self._users.remember(header, user)
            self._guesses.succeeded(name, asked_from)
        return user

    def _begin(self, key: bytes, header: bytes, name: str, address: str) -> None:
        if len(self._waiting) >= MAX_WAITING:
            raise RegistryError(503, 503, "Too many logins wait to be checked; try again.")
        wait_ms = self._guesses.attempt(name, address, self._now_ms())
        if wait_ms:
            raise RegistryError(429, 429, "Too many wrong passwords; try again later.", retry_after_s=-(-wait_ms // 1000))
        found = asyncio.get_running_loop().run_in_executor(self._threads, self._users.checked, header)
        found.add_done_callback(lambda _: self._waiting.pop(key))
        self._waiting[key] = found, address

    def close(self) -> None:
        """Check no further login."""
        self._threads.shutdown(wait=False, cancel_futures=True)
