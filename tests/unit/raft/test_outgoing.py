import random

from tests.unit.raft.driver import at, disk, voters
from tidelog.model.machine import Token
from tidelog.raft.effects import Effects, Inbound, Node, Reply, Send
from tidelog.raft.outgoing import Outgoing, voter_node
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint, Voter


def outgoing(**options: object) -> tuple[Outgoing, Effects]:
    effects = Effects()
    config = RaftConfig(ReplicaKey(1, disk(1)), "c", (at(1),), **options)  # type: ignore[arg-type]
    return Outgoing(config, effects, random.Random(1)), effects


def test_a_node_that_is_asked_already_is_not_asked_again() -> None:
    out, effects = outgoing()
    to = Node(2, "h2", 9002)
    first = out.send(to, "request", 0)
    assert first and out.send(to, "request", 1) == 0
    out.reply(Inbound(Token(7), 1, "CONTROLLER"), "response")
    assert effects.take() == [Send(first, to, "request"), Reply(Token(7), "response")]
    assert out.answered(first) == 2 and out.ready(2, 1)


def test_bootstrap_servers_are_asked_in_turn_and_without_any_the_other_voters() -> None:
    out, _ = outgoing(bootstrap=(("a", 1), ("b", 2)))
    assert [place.host for _ in range(3) if (place := out.next_place_to_ask(voters(1, 2, 3), 0))] == ["b", "a", "b"]
    out, _ = outgoing()
    assert {place.id for _ in range(4) if (place := out.next_place_to_ask(voters(1, 2, 3), 0))} == {2, 3}
    out.send(Node(2, "h2", 9002), "request", 0)
    out.send(Node(3, "h3", 9003), "request", 0)
    assert out.next_place_to_ask(voters(1, 2, 3), 0) is None


def test_a_voter_is_reached_on_this_nodes_listener_or_on_its_first_one() -> None:
    assert voter_node(voters(1, 2), 2, "CONTROLLER") == Node(2, at(2).host, at(2).port)
    assert voter_node(voters(1), 2, "CONTROLLER") is None
    both = VoterSet.of([Voter(2, disk(2), (at(2), Endpoint("SECURE", "h2", 9102)))])
    assert voter_node(both, 2, "SECURE") == Node(2, "h2", 9102)
    assert voter_node(both, 2, "ANOTHER") == Node(2, at(2).host, at(2).port)
