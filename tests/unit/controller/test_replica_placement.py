import random
from collections import Counter

import pytest

from tidelog.controller.replica_placement import InvalidReplicationFactor, UsableBroker, machine_of, place, usable_brokers
from tidelog.metadata.image import BrokerImage, Endpoint
from tidelog.model.ids import Uuid


def brokers(*ids: int, racks: dict[int, str] | None = None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [UsableBroker(each, (racks or {}).get(each), each in fenced) for each in ids]


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_replicas_spread_evenly(seed: int) -> None:
    assignments = place(brokers(1, 2, 3, 4), 8, 3, random.Random(seed))
    assert Counter(replicas[0] for replicas in assignments) == dict.fromkeys((1, 2, 3, 4), 2)
    assert Counter(replica for replicas in assignments for replica in replicas) == dict.fromkeys((1, 2, 3, 4), 6)
    assert all(len(set(replicas)) == 3 for replicas in assignments)


@pytest.mark.parametrize("seed", range(20))
def test_replicas_of_a_partition_sit_in_different_racks(seed: int) -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    for replicas in place(brokers(*racks, racks=racks), 12, 3, random.Random(seed)):
        assert {racks[replica] for replica in replicas} == {"a", "b", "c"}


@pytest.mark.parametrize("seed", range(20))
def test_racks_take_turns_with_the_leaders_also_when_one_is_larger(seed: int) -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b"}
    assignments = place(brokers(*racks, racks=racks), 8, 2, random.Random(seed))
    assert Counter(racks[replicas[0]] for replicas in assignments) == {"a": 4, "b": 4}
    assert all({racks[replica] for replica in replicas} == {"a", "b"} for replicas in assignments)


@pytest.mark.parametrize("seed", range(20))
def test_another_rack_counts_for_more_than_an_unfenced_broker_but_never_leads_fenced(seed: int) -> None:
    racks = {1: "a", 2: "a", 3: "b"}
    for replicas in place(brokers(*racks, racks=racks, fenced=(3,)), 6, 2, random.Random(seed)):
        assert replicas[0] != 3
        assert replicas[1] == 3


@pytest.mark.parametrize("seed", range(20))
def test_many_partitions_use_many_pairs_of_brokers(seed: int) -> None:
    pairs = set(place(brokers(*range(8)), 400, 2, random.Random(seed)))
    assert len(pairs) > 20


@pytest.mark.parametrize("seed", range(20))
def test_fenced_brokers_are_used_only_where_others_do_not_suffice(seed: int) -> None:
    usable = brokers(1, 2, 3, fenced=(3,))
    assert all(3 not in replicas for replicas in place(usable, 4, 2, random.Random(seed)))
    assert all(replicas[2] == 3 for replicas in place(usable, 4, 3, random.Random(seed)))


def test_too_few_brokers_are_said_to_be_too_few() -> None:
    with pytest.raises(InvalidReplicationFactor, match="because only 2 broker"):
        place(brokers(1, 2), 1, 3, random.Random(0))
    with pytest.raises(InvalidReplicationFactor, match="All brokers are currently fenced"):
        place(brokers(1, fenced=(1,)), 1, 1, random.Random(0))
    with pytest.raises(InvalidReplicationFactor, match="All brokers are currently fenced"):
        place([], 1, 1, random.Random(0))


def registered(broker_id: int, **hosts: str) -> BrokerImage:
    """A broker that advertises these hosts, by listener."""
    endpoints = {name: Endpoint(name, host, 9000 + broker_id) for name, host in hosts.items()}
    return BrokerImage(broker_id, 1, Uuid(bytes(16)), endpoints, {}, None, False, False, ())


def test_brokers_are_one_machine_when_all_their_hosts_are_equal() -> None:
    first, second = registered(1, CLIENTS="lb.example", INSIDE="one"), registered(2, CLIENTS="lb.example", INSIDE="two")
    assert machine_of(first) != machine_of(second), "a balancer for clients makes no machine"
    assert machine_of(first) == machine_of(registered(3, INSIDE="one", CLIENTS="lb.example"))
    assert [each.machine for each in usable_brokers([second, first])] == [machine_of(first), machine_of(second)]


@pytest.mark.parametrize("seed", range(20))
def test_a_machine_counts_for_more_than_an_unfenced_broker_as_a_rack_does(seed: int) -> None:
    machines = {1: "a", 2: "a", 3: "b"}
    usable = [each._replace(machine=machines[each.id]) for each in brokers(1, 2, 3, fenced=(3,))]
    assert all(replicas[1] == 3 for replicas in place(usable, 4, 2, random.Random(seed)))
    assert {frozenset(replicas) for replicas in place(usable, 4, 3, random.Random(seed))} == {frozenset(machines)}
