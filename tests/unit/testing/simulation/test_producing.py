"""An idempotent producer on a simulated cluster."""

import asyncio
from collections import Counter

import pytest

from tidelog.model.ids import TopicPartition
from tidelog.testing.simulation import Cluster, simulate
from tidelog.testing.simulation.producing import STALE_S, Lost, Producer

AT = TopicPartition("t", 0)


def test_a_batch_is_repeated_until_it_is_acknowledged_and_written_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("t")
        producer = Producer(cluster.client())
        assert await producer.send(AT, [(None, b"first")]) == 0
        leader = cluster.leader("t")
        assert leader is not None
        # The answer gets lost with the connection: what is sent again is known by its sequence.
        others = [node for node in cluster.nodes if node != leader]
        for other in others:
            cluster.cut(other, leader)
        cluster.hardware.agenda.call_later(4.0, cluster.hardware.network.reset_some, 2.0)
        cluster.hardware.agenda.call_later(4.5, cluster.heal)
        await producer.send(AT, [(None, b"second"), (None, b"third")])
        await cluster.settle()
        assert [record.value for record in await cluster.read("t")] == [b"first", b"second", b"third"]

    simulate(1, scenario)


def test_sequences_that_stay_missing_are_a_loss_and_those_of_a_moment_are_not() -> None:
    async def scenario(cluster: Cluster) -> float:
        await cluster.create_topic("t")
        producer = Producer(cluster.client())
        await producer.send(AT, [(None, b"first")])
        producer._sequences[AT] = 7  # as if six more had been acknowledged, and were gone
        began = cluster.now
        with pytest.raises(Lost, match="OUT_OF_ORDER_SEQUENCE_NUMBER at sequence 7"):
            await producer.send(AT, [(None, b"second")])
        return cluster.now - began

    waited = simulate(1, scenario).result
    assert waited is not None and STALE_S <= waited < 2 * STALE_S


def test_it_stops_when_it_is_told_to() -> None:
    async def scenario(cluster: Cluster) -> int | None:
        await cluster.create_topic("t")
        producer = Producer(cluster.client())
        await producer.send(AT, [(None, b"first")])
        for machine in cluster.nodes.values():
            machine.kill()
        until = cluster.now + 5
        return await producer.send(AT, [(None, b"never")], lambda: cluster.now > until)

    assert simulate(1, scenario).result is None


def test_what_is_produced_at_the_same_time_is_written_all_of_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("t")
        await cluster.produce("t", "v0")
        offsets = await asyncio.gather(*(cluster.produce("t", f"v{number}") for number in range(1, 4)))
        assert sorted(offsets) == [1, 2, 3]
        assert Counter(record.value for record in await cluster.read("t")) == Counter([b"v0", b"v1", b"v2", b"v3"])

    simulate(1, scenario)


def test_what_follows_a_batch_that_was_given_up_is_not_taken_for_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("t")
        await cluster.produce("t", "first")
        leader = cluster.leader("t")
        for other in cluster.nodes:
            if other != leader:
                cluster.nodes[other].pause()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(cluster.produce("t", "second"), 1.0)
        for other in cluster.nodes:
            if other != leader:
                cluster.nodes[other].resume()
        await cluster.produce("t", "third")
        assert [record.value for record in await cluster.read("t")] == [b"first", b"second", b"third"]

    simulate(1, scenario)
