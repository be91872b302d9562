"""What goes wrong in a simulated cluster, and what comes back by itself."""

import asyncio

import pytest

from tidelog.metadata.supported_features import default_levels
from tidelog.testing.simulation import KINDS, Cluster, Shape, simulate
from tidelog.testing.simulation.cluster import SimCluster
from tidelog.testing.simulation.faults import ELIGIBLE_REPLICAS, Faults


@pytest.mark.parametrize("kind", ["full", "stop", "split", "voter"])
def test_a_cluster_gets_over_it(kind: str) -> None:
    async def scenario(cluster: Cluster) -> list[bytes | None]:
        await cluster.create_topic("t")
        for number in range(8):
            await cluster.produce("t", f"{number}")
            await asyncio.sleep(2)
        await cluster.settle()
        return [record.value for record in await cluster.read("t")]

    run = simulate(2, scenario, faults=(kind,))
    assert run.result == [b"%d" % number for number in range(8)]
    assert run.faults[kind] > 0


def test_no_machine_loses_its_power_where_who_lost_records_could_be_elected() -> None:
    levels = {name: level for name, level in default_levels().items() if name != ELIGIBLE_REPLICAS}

    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("t")
        await asyncio.sleep(20)

    run = simulate(2, scenario, shape=Shape(levels=levels), faults=("power", "disk", "flip"))
    assert run.faults == {}


def test_every_kind_that_is_named_is_one_that_there_is() -> None:
    cluster = SimCluster(Shape(brokers=1), 1)
    faults = Faults(cluster, 1)
    assert set(faults._begin) == set(KINDS)
    with pytest.raises(ValueError, match="no such kind of fault: fire, flood"):
        Faults(cluster, 1, ["kill", "flood", "fire"])


def test_nobody_kills_all_while_one_may_lack_what_it_lost_with_its_power(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = [True]
    monkeypatch.setattr(SimCluster, "healthy", lambda self: healthy[0])
    cluster = SimCluster(Shape(brokers=3), 1)
    faults = Faults(cluster, 1)
    faults.rng.random = lambda: 0.9  # type: ignore[method-assign]
    first = cluster.machines[0]
    first.start()
    assert faults._power(first)
    healthy[0] = False
    assert not faults._all(first)
    healthy[0] = True
    assert faults._all(first)
    healthy[0] = False
    assert faults._all(first), "it is known to be in sync again"


def test_only_one_machine_at_a_time_may_lose_its_unsynced_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimCluster, "healthy", lambda self: True)
    cluster = SimCluster(Shape(brokers=3), 1)
    faults = Faults(cluster, 1)
    first, second, _ = cluster.brokers
    first.start()
    second.start()
    first.serving = True
    assert faults.settled()
    assert faults._disk(first), "its disk fails within the next operations"
    assert not faults.settled()
    assert not faults._power(second)


def test_while_a_machine_misses_what_it_lost_one_other_broker_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 175: a machine lost its power, another process was killed, and the third one was stopped in order."""
    healthy = [True]
    monkeypatch.setattr(SimCluster, "healthy", lambda self: healthy[0])
    cluster = SimCluster(Shape(brokers=3), 1)
    faults = Faults(cluster, 1)
    first, second, third = cluster.brokers
    for each in cluster.brokers:
        each.start()
        each.serving = True
    assert faults._power(first)
    healthy[0] = False
    assert faults._kill(second)
    second.start()
    second.serving = True
    assert not faults._stop(third)
    assert not faults._kill(third)
    assert not faults._full(third)
    assert third.running and third.serving
    assert faults._kill(second), "it has ended already"
    healthy[0] = True
    assert faults._kill(third), "all are in sync again"
