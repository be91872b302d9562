"""A client of a simulated cluster."""

import pytest

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.testing.simulation import Client, Cluster, Later, Shape, simulate
from tidelog.testing.simulation.client import GROUP, check

ONE = Shape(brokers=1)


def test_it_finds_leaders_and_coordinators_and_forgets_them_when_told() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("t")
        client = cluster.client()
        assert await client.leader(TopicPartition("t", 0)) == ("10.0.0.1", 9092)
        assert client.metadata.leader("t", 0) is not None
        client.lost(TopicPartition("t", 0))
        assert client.metadata.leader("t", 0) is None
        await cluster.until(lambda: cluster.leader("__consumer_offsets") is not None or cluster.now > 0)
        found = await client.until(lambda: client.coordinator(GROUP, "g"), lambda: False, lambda: None)
        assert found == ("10.0.0.1", 9092)
        client.forget(GROUP, "g")
        assert await client.coordinator(GROUP, "g") == found

    simulate(1, scenario, shape=ONE)


def test_a_node_that_is_down_is_later_and_until_goes_on_until_it_is_told_to_stop() -> None:
    async def scenario(cluster: Cluster) -> int:
        client: Client = cluster.client()
        cluster.nodes[1].kill()
        with pytest.raises(Later):
            await client.refresh()
        attempts = 0

        def failed() -> None:
            nonlocal attempts
            attempts += 1

        assert await client.until(client.refresh, lambda: attempts == 3, failed) is None
        return attempts

    assert simulate(1, scenario, shape=ONE).result == 3


def test_what_passes_is_later_and_what_does_not_is_a_failure() -> None:
    check(ErrorCode.NONE, "nothing")
    with pytest.raises(Later, match="Produce: NOT_LEADER_OR_FOLLOWER"):
        check(ErrorCode.NOT_LEADER_OR_FOLLOWER, "Produce")
    with pytest.raises(AssertionError, match="Produce: INVALID_RECORD"):
        check(ErrorCode.INVALID_RECORD, "Produce")
