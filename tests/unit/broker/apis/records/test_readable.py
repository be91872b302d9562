from __future__ import annotations

from tests.unit.broker.allowing import Allowing
from tests.unit.replication.world import World
from tidelog.broker.apis.records.readable import ReadGate
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.security.principal import with_groups

READ = (AclOperation.READ, ResourceType.TOPIC, "t")
ACTION = (AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)


def gate(access: Allowing, *, follower: bool = False) -> ReadGate:
    world = World()
    world.access = access
    return ReadGate(world.context(18), access, follower=follower)


def test_each_topic_is_asked_for_once_and_an_unknown_one_not_at_all() -> None:
    access = Allowing({READ})
    readable = gate(access)
    assert [readable.refuses(topic) for topic in ("t", "u", "t", "u", None)] == [False, True, False, True, False]
    assert access.loud == [READ, (AclOperation.READ, ResourceType.TOPIC, "u")]


def test_a_follower_is_asked_for_one_permission_whatever_it_fetches() -> None:
    access = Allowing({ACTION})
    assert [gate(access, follower=True).refuses(topic) for topic in ("t", None)] == [False, False]
    access.change(READ)
    assert [gate(access, follower=True).refuses(topic) for topic in ("t", None)] == [True, True]


def test_a_change_of_the_acls_is_taken_over_when_the_fetch_asks_for_it() -> None:
    access = Allowing({READ})
    readable = gate(access)
    before = readable.decider
    assert not readable.refuses("t") and not readable.renew() and readable.decider == before
    access.change()
    assert not readable.refuses("t")
    assert readable.renew() and readable.refuses("t") and readable.decider != before
    assert not readable.renew()


def test_a_client_in_other_groups_is_asked_for_again() -> None:
    access = Allowing({READ})
    first, second = gate(access), gate(access)
    assert first.decider == second.decider
    second._ctx.principal = with_groups(second._ctx.principal, frozenset({"Group:staff"}))
    assert first.decider != second.decider
