"""Requests of other nodes: answered once, failed when the member stops."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.server.cluster.quorum_requests import QuorumRequests
from tidelog.server.runtime import LoopRuntime


class Machine:
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.abandoned: list[Any] = []

    def request(self, token: Any, api_key: int, version: int, listener: str, request: Any, now_ms: int) -> list[Any]:
        self.asked.append(token)
        return []

    def abandon(self, token: Any) -> None:
        self.abandoned.append(token)


def requests(machine: Machine) -> QuorumRequests:
    runtime = LoopRuntime(asyncio.get_running_loop())
    member: Any = SimpleNamespace(machine=machine)
    return QuorumRequests(member, runtime, lambda event: event() and None)


def test_an_answer_reaches_its_request_and_later_ones_nobody() -> None:
    async def main() -> None:
        machine = Machine()
        made = requests(machine)
        asked = asyncio.ensure_future(made.ask(52, 0, "CONTROLLER", object()))
        await asyncio.sleep(0)
        assert made.replying(machine.asked[0])("answer") == []
        assert await asked == "answer"
        made.reply(machine.asked[0], "again")
        assert machine.abandoned == []

    asyncio.run(main())


def test_a_request_whose_connection_closed_is_abandoned() -> None:
    async def main() -> None:
        machine = Machine()
        asked = requests(machine).ask(1, 17, "CONTROLLER", object())
        asked.send(None)
        asked.close()
        assert machine.abandoned == machine.asked

    asyncio.run(main())


def test_a_member_that_stops_fails_requests_that_wait_and_refuses_new_ones() -> None:
    async def main() -> None:
        made = requests(Machine())
        asked = asyncio.ensure_future(made.ask(1, 17, "CONTROLLER", object()))
        await asyncio.sleep(0)
        made.close(KafkaError(ErrorCode.NOT_CONTROLLER, "the controller stops"))
        with pytest.raises(KafkaError, match="the controller stops"):
            await asked
        with pytest.raises(KafkaError) as refused:
            await made.ask(1, 17, "CONTROLLER", object())
        assert refused.value.code is ErrorCode.BROKER_NOT_AVAILABLE

    asyncio.run(main())
