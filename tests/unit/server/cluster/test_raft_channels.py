from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from tests.unit.server.controllers import Controllers, free_ports
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.vote import VoteRequest, VoteResponse
from tidelog.raft.effects import Node
from tidelog.server.cluster import raft_channels
from tidelog.server.cluster.raft_channels import Peers


class Heard:
    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []

    def answered(self, request_id: int, message: Any) -> None:
        self.answers.append((request_id, message))

    def failed(self, request_id: int, *, refused: bool, unsupported: bool) -> None:
        self.answers.append((request_id, "refused" if refused else "unsupported" if unsupported else "failed"))


def test_answers_come_and_failures_are_told_apart(one: Controllers) -> None:
    heard = Heard()

    async def main() -> None:
        await one.start()
        peers = Peers(one.runtime, heard, "test")
        here = Node(1, "localhost", one.ports[1])

        async def ask(request_id: int, to: Node, request: Any) -> Any:
            peers.send(request_id, to, request)
            await one.until(lambda: heard.answers and heard.answers[-1][0] == request_id)
            return heard.answers[-1][1]

        assert isinstance(await ask(1, here, VoteRequest()), VoteResponse)
        assert isinstance(await ask(2, here, ApiVersionsRequest()), ApiVersionsResponse)
        assert await ask(3, here, MetadataRequest()) == "unsupported"
        assert await ask(4, Node(9, "localhost", free_ports(1)[0]), VoteRequest()) == "refused"
        assert isinstance(await ask(5, here, VoteRequest()), VoteResponse), "the connection goes on"
        peers.close()
        peers.send(6, here, VoteRequest())
        assert heard.answers[-1][0] == 5

    one.run(main)


def test_who_is_asked_anew_has_forgotten_the_first_question(one: Controllers) -> None:
    """Its answer would come first, and be taken for that to the second."""
    heard = Heard()
    silent = socket.socket()
    silent.bind(("localhost", 0))
    silent.listen(5)

    async def main() -> None:
        await one.start()
        peers = Peers(one.runtime, heard, "test")
        peers.send(1, Node(7, "localhost", silent.getsockname()[1]), VoteRequest())
        await asyncio.sleep(0)
        peers.send(2, Node(7, "localhost", one.ports[1]), VoteRequest())
        await one.until(lambda: heard.answers)
        assert [request_id for request_id, _ in heard.answers] == [2]
        peers.close()

    try:
        one.run(main)
    finally:
        silent.close()


def test_a_node_of_another_cluster_is_named_once(one: Controllers, caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()

    async def main() -> None:
        await one.start()
        peers = Peers(one.runtime, heard, "test")
        here = Node(1, "localhost", one.ports[1])
        for request_id in (1, 2):
            peers.send(request_id, here, VoteRequest(cluster_id="another"))
            await one.until(lambda request_id=request_id: heard.answers and heard.answers[-1][0] == request_id)
        peers.close()

    one.run(main)
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "node 1 at localhost" in said and "of another cluster" in said and "meta.properties" in said


def test_a_node_that_has_no_acls_yet_and_does_not_know_this_one_as_a_super_user_is_named_once(
    one: Controllers, caplog: pytest.LogCaptureFixture
) -> None:
    peers = Peers(one.runtime, Heard(), "test")
    for _ in range(2):
        peers._look(Node(1, "localhost", 9093), VoteResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "node 1 at localhost:9093" in said and "super.users" in said


def test_an_unexpected_error_is_a_failure_and_the_next_request_connects(
    one: Controllers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard, faults, really_open = Heard(), [RuntimeError("a bug")], raft_channels.open_line

    async def open_line(*given: Any) -> None:
        if faults:
            raise faults.pop()
        await really_open(*given)

    async def main() -> None:
        await one.start()
        monkeypatch.setattr(raft_channels, "open_line", open_line)
        peers = Peers(one.runtime, heard, "test")
        here = Node(1, "localhost", one.ports[1])
        for request_id in (1, 2):
            peers.send(request_id, here, VoteRequest())
            await one.until(lambda request_id=request_id: heard.answers and heard.answers[-1][0] == request_id)
        peers.close()

    one.run(main)
    assert heard.answers[0] == (1, "failed")
    assert isinstance(heard.answers[1][1], VoteResponse)
    assert "a bug" in caplog.text
