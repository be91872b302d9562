from __future__ import annotations

from typing import Any

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld, refused, run
from tidelog.broker.apis.cluster.raft_voters import (
    add_raft_voter,
    remove_raft_voter,
)
from tidelog.broker.ports import Asker
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tidelog.security.principal import ANONYMOUS


class Leader:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[int, int, Any]] = []
        self.askers: list[Asker | None] = []

    async def forward(self, api_key: int, version: int, request: Any, asker: Asker | None = None) -> Any:
        self.asked.append((api_key, version, request))
        self.askers.append(asker)
        return self.answer


def test_the_quorums_leader_is_asked_in_the_clients_version_and_its_answer_is_the_clients() -> None:
    for handler, key, version, request, answer in (
        (add_raft_voter, ApiKey.ADD_RAFT_VOTER, 1, AddRaftVoterRequest(voter_id=4), AddRaftVoterResponse(error_code=126)),
        (remove_raft_voter, ApiKey.REMOVE_RAFT_VOTER, 0, RemoveRaftVoterRequest(voter_id=4), RemoveRaftVoterResponse()),
    ):
        world, leader = NodeWorld(), Leader(answer)
        world.broker.controller = leader  # type: ignore[assignment]
        ctx = world.context(version)
        ctx.api_key = key
        assert run(handler(ctx, request)) is answer  # type: ignore[operator]
        assert leader.asked == [(key, version, request)]
        world.broker.access = Allowing()
        run(handler(ctx, request))  # type: ignore[operator]
        assert leader.askers == [None, Asker(ANONYMOUS, "tester", "10.0.0.1")], "the leader authorizes the client"


def test_without_a_leader_both_are_told_so() -> None:
    error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "nobody leads")
    added = refused(NodeWorld().context(1), ApiKey.ADD_RAFT_VOTER, AddRaftVoterRequest(), error)
    removed = refused(NodeWorld().context(), ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(), error)
    for response in (added, removed):
        assert (response.error_code, response.error_message) == (ErrorCode.REQUEST_TIMED_OUT, "nobody leads")
