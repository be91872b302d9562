"""Passwords are checked beside the loop: once for the same login, few at a time, and not without end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tidelog.registry.errors import RegistryError
from tidelog.registry.serving.logins import MAX_WAITING, THREADS, Logins
from tidelog.registry.serving.users import READ, User, Users

ANN = User("ann", READ, "")


class Slow(Users):
    """``ann`` is right; each check waits until it may end. Counts the checks, and how many run at once."""

    def __init__(self) -> None:
        super().__init__({})
        self.may_end = threading.Event()
        self.checks: list[bytes] = []
        self.running = self.most = 0
        self._guard = threading.Lock()

    def checked(self, header: bytes) -> User | None:
        with self._guard:
            self.checks.append(header)
            self.running += 1
            self.most = max(self.most, self.running)
        self.may_end.wait(30)
        with self._guard:
            self.running -= 1
        return ANN if header == b"ann" else None


def test_a_login_that_connections_send_at_once_is_checked_once() -> None:
    users = Slow()

    async def main() -> list[User | None]:
        logins = Logins(users)
        asked = [asyncio.create_task(logins.admitted(b"ann")) for _ in range(20)]
        await asyncio.sleep(0)
        users.may_end.set()
        found = await asyncio.gather(*asked)
        found.append(await logins.admitted(b"ann"))
        logins.close()
        return list(found)

    assert asyncio.run(main()) == [ANN] * 21
    assert users.checks == [b"ann"]


def test_a_flood_of_wrong_passwords_is_bounded_and_holds_no_known_user() -> None:
    users = Slow()
    users.remember(b"bob", ANN)

    async def main() -> list[object]:
        logins = Logins(users)
        flood = [asyncio.create_task(logins.admitted(b"wrong %d" % number)) for number in range(MAX_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(RegistryError) as refused:
            await logins.admitted(b"ann")
        assert refused.value.status == 503
        assert await logins.admitted(b"bob") is ANN
        assert await logins.admitted(b"") is None
        users.may_end.set()
        found: list[object] = list(await asyncio.gather(*flood))
        found.append(await logins.admitted(b"ann"))
        logins.close()
        return found

    assert asyncio.run(main()) == [None] * MAX_WAITING + [ANN]
    assert users.most <= THREADS


def test_a_connection_that_ends_leaves_the_check_to_the_others() -> None:
    users = Slow()

    async def main() -> User | None:
        logins = Logins(users)
        first, second = (asyncio.create_task(logins.admitted(b"ann")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        users.may_end.set()
        found = await second
        logins.close()
        return found

    assert asyncio.run(main()) is ANN
