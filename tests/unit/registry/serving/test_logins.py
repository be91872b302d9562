"""Passwords are checked beside the loop: once for the same login, few at a time, and not without end."""

from __future__ import annotations

import asyncio
import base64
import threading

import pytest

from tidelog.http.guesses import FREE_FAILURES
from tidelog.registry.errors import RegistryError
from tidelog.registry.serving.logins import MAX_WAITING, THREADS, Logins
from tidelog.registry.serving.users import READ, User, Users

ANN = User("ann", READ, "")
HERE = "10.9.9.9"


def basic(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


ANNS, BOBS = basic("ann:tea"), basic("bob:tea")


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
        return ANN if header == ANNS else None


def test_a_login_that_connections_send_at_once_is_checked_once() -> None:
    users = Slow()

    async def main() -> list[User | None]:
        logins = Logins(users, lambda: 0)
        asked = [asyncio.create_task(logins.admitted(ANNS, HERE)) for _ in range(20)]
        await asyncio.sleep(0)
        users.may_end.set()
        found = await asyncio.gather(*asked)
        found.append(await logins.admitted(ANNS, HERE))
        logins.close()
        return list(found)

    assert asyncio.run(main()) == [ANN] * 21
    assert users.checks == [ANNS]


def test_a_flood_of_wrong_passwords_is_bounded_and_holds_no_known_user() -> None:
    users = Slow()
    users.remember(BOBS, ANN)

    async def main() -> list[object]:
        logins = Logins(users, lambda: 0)
        flood = [
            asyncio.create_task(logins.admitted(basic(f"eve{number}:x"), f"10.0.0.{number}")) for number in range(MAX_WAITING)
        ]
        await asyncio.sleep(0)
        with pytest.raises(RegistryError) as refused:
            await logins.admitted(ANNS, HERE)
        assert refused.value.status == 503
        assert await logins.admitted(BOBS, HERE) is ANN
        assert await logins.admitted(b"", HERE) is None
        users.may_end.set()
        found: list[object] = list(await asyncio.gather(*flood))
        found.append(await logins.admitted(ANNS, HERE))
        logins.close()
        return found

    assert asyncio.run(main()) == [None] * MAX_WAITING + [ANN]
    assert users.most <= THREADS


def test_a_connection_that_ends_leaves_the_check_to_the_others() -> None:
    users = Slow()

    async def main() -> User | None:
        logins = Logins(users, lambda: 0)
        first, second = (asyncio.create_task(logins.admitted(ANNS, HERE)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        users.may_end.set()
        found = await second
        logins.close()
        return found

    assert asyncio.run(main()) is ANN


def test_wrong_passwords_slow_down_their_address_and_no_other() -> None:
    users = Slow()
    users.may_end.set()
    now_ms = 0

    async def main() -> None:
        nonlocal now_ms
        logins = Logins(users, lambda: now_ms)
        for number in range(FREE_FAILURES):
            assert await logins.admitted(basic(f"ann:{number}"), HERE) is None
        with pytest.raises(RegistryError) as refused:
            await logins.admitted(basic("ann:6"), HERE)
        assert (refused.value.status, refused.value.retry_after_s) == (429, 1)
        assert len(users.checks) == FREE_FAILURES
        assert await logins.admitted(ANNS, "10.1.1.1") is ANN
        assert await logins.admitted(ANNS, HERE) is ANN, "known by now"
        now_ms = 1000
        assert await logins.admitted(basic("ann:6"), HERE) is None
        logins.close()

    asyncio.run(main())


def test_a_right_password_is_forgiven_what_came_before() -> None:
    users = Slow()
    users.may_end.set()

    async def main() -> None:
        logins = Logins(users, lambda: 0)
        for number in range(FREE_FAILURES - 1):
            assert await logins.admitted(basic(f"ann:{number}"), HERE) is None
        assert await logins.admitted(ANNS, HERE) is ANN
        for number in range(FREE_FAILURES):
            assert await logins.admitted(basic(f"ann:{number}"), HERE) is None
        logins.close()

    asyncio.run(main())


def test_what_is_no_login_is_not_looked_at() -> None:
    users = Slow()

    async def main() -> None:
        logins = Logins(users, lambda: 0)
        for header in (b"Bearer x", b"Basic !", b"Basic"):
            assert await logins.admitted(header, HERE) is None
        logins.close()

    asyncio.run(main())
    assert users.checks == []
