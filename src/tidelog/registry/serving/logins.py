"""Logins beside the loop: passwords are hashed in threads of their own, few at a time, so that requests of users who are known
and threads that parse schemas do not wait behind wrong passwords.

One login that several connections send at once is hashed once. When too many wait, the next one is refused until there is
room.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from tidelog.registry.errors import RegistryError
from tidelog.registry.serving.users import User, Users

THREADS = 2
"""Each needs 16 MiB while it hashes."""
MAX_WAITING = 64


class Logins:
    """On one loop. ``close`` when no more requests come."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._threads = ThreadPoolExecutor(THREADS, "registry-login")
        self._waiting: dict[bytes, asyncio.Future[User | None]] = {}

    async def admitted(self, header: bytes) -> User | None:
        """The user of an Authorization header; None for a wrong one, and for none. 503 when too many wait."""
        known = self._users.known(header)
        if known is not None or not header:
            return known
        key = self._users.digest(header)
        found = self._waiting.get(key)
        if found is None:
            if len(self._waiting) >= MAX_WAITING:
                raise RegistryError(503, 503, "Too many logins wait to be checked; try again.")
            found = self._waiting[key] = asyncio.get_running_loop().run_in_executor(self._threads, self._users.checked, header)
            found.add_done_callback(lambda _: self._waiting.pop(key))
        user = await asyncio.shield(found)
        if user is not None:
            self._users.remember(header, user)
        return user

    def close(self) -> None:
        """Check no further login."""
        self._threads.shutdown(wait=False, cancel_futures=True)
