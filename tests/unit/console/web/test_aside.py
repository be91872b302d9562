from __future__ import annotations

import asyncio
import threading

import pytest

from tidelog.client.calls import Call
from tidelog.console.web.aside import Aside
from tidelog.model.errors import ErrorCode, KafkaError


def where() -> Call[int]:
    """The thread that runs the call; it asks nothing."""
    yield from ()
    return threading.get_ident()


def refused() -> Call[int]:
    yield from ()
    raise KafkaError(ErrorCode.INVALID_REQUEST, "no")


def test_calls_run_in_one_thread_beside_the_loop() -> None:
    async def run() -> None:
        aside = Aside("localhost:1", {})
        first, second = await asyncio.gather(aside.run(where()), aside.run(where()))
        assert first == second != threading.get_ident()
        with pytest.raises(KafkaError, match="no"):
            await aside.run(refused())
        await aside.close()
        assert not [each for each in threading.enumerate() if each.ident == first]

    asyncio.run(run())


def test_one_that_was_never_used_has_no_thread() -> None:
    async def run() -> None:
        before = threading.active_count()
        aside = Aside("localhost:1", {})
        assert threading.active_count() == before
        await aside.close()

    asyncio.run(run())
