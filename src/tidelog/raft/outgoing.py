"""Outgoing: queues replies and requests of a replica as effects.

A node gets one request at a time, and after a failure only after a back-off (``in_flight_requests``). While the leader is
unknown, bootstrap servers, or without any the voters, are asked in turn.
"""

from __future__ import annotations

from typing import Any

from tidelog.model.ports import Rng
from tidelog.raft.effects import Effect, Effects, Inbound, Node, Reply, Send
from tidelog.raft.in_flight_requests import Connections
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.voters import VoterSet


def voter_node(voters: VoterSet, node_id: int, listener: str) -> Node | None:
    """The address of a voter on this controller listener; None while the set does not have it."""
    at = voters.endpoint_of(node_id, listener)
    return None if at is None else Node(node_id, at.host, at.port)


class Outgoing:
    """Times in ms."""

    def __init__(self, config: RaftConfig, effects: Effects, rng: Rng) -> None:
        self._config = config
        self._effects = effects
        self._connections = Connections(config.answer_timeout_ms, config.retry_backoff_ms, rng)
        self._bootstrap_turn = 0

    def add(self, effect: Effect) -> None:
        self._effects.add(effect)

    def reply(self, inbound: Inbound, response: Any) -> None:
        self._effects.add(Reply(inbound.token, response))

    def send(self, to: Node, request: Any, now_ms: int) -> int:
        """Sends a request if the node may be asked now; returns its id, or 0."""
        if not self._connections.ready(to.id, now_ms):
            return 0
        request_id = self._connections.sent(to.id, now_ms)
        self._effects.add(Send(request_id, to, request))
        return request_id

    def ready(self, node_id: int, now_ms: int) -> bool:
        """Whether a request may be sent to this node now."""
        return self._connections.ready(node_id, now_ms)

    def ready_at(self, node_id: int) -> int:
        """When a request may be sent at the latest."""
        return self._connections.ready_at(node_id)

    def any_waiting(self, now_ms: int) -> bool:
        """Whether any request is in flight."""
        return self._connections.any_waiting(now_ms)

    def answered(self, request_id: int) -> int | None:
        """The node that answered; None for an answer that is no longer waited for."""
        return self._connections.answered(request_id)

    def failed(self, node_id: int, now_ms: int) -> None:
        """The request failed, or its answer was useless: back off."""
        self._connections.failed(node_id, now_ms)

    def reset(self) -> None:
        """The role changed: answers to earlier requests are no longer waited for, and every node may be asked."""
        self._connections.reset()

    def next_place_to_ask(self, voters: VoterSet, now_ms: int) -> Node | None:
        """The next bootstrap server, or without any the next voter, to ask for the leader."""
        places = [Node(-2 - index, host, port) for index, (host, port) in enumerate(self._config.bootstrap)]
        if not places:
            others = (node_id for node_id in voters.ids if node_id != self._config.key.id)
            nodes = (voter_node(voters, node_id, self._config.listener) for node_id in others)
            places = [node for node in nodes if node is not None]
        for _ in range(len(places)):
            self._bootstrap_turn = (self._bootstrap_turn + 1) % len(places)
            place = places[self._bootstrap_turn]
            if self._connections.ready(place.id, now_ms):
                return place
        return None
