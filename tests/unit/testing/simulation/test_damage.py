"""Bits that turn on disks: noticed, not spread, repaired from the other replicas."""

import asyncio
import random

from tidelog.testing.simulation import Cluster, Shape, simulate
from tidelog.testing.simulation.damage import Damage

SETTINGS = Shape(settings={"log.roll.ms": "1000"})


async def filled(cluster: Cluster, segments: int = 4) -> list[bytes | None]:
    """A topic with closed segments; its values."""
    await cluster.create_topic("t")
    values: list[bytes | None] = []
    for number in range(segments):
        await cluster.produce("t", f"{number}")
        values.append(b"%d" % number)
        await asyncio.sleep(1.5)
    return values


def test_wherever_a_bit_turns_readers_find_the_records_and_the_replicas_are_whole_again() -> None:
    async def scenario(cluster: Cluster) -> list[tuple[str, bool]]:
        values = await filled(cluster)
        damage = cluster.faults.damage
        seen = []
        for _ in range(6):
            leader = cluster.leader("t")
            assert leader is not None
            place = None
            while place is None:  # nothing of the kind that was drawn may be there
                place = damage.flip(cluster.nodes[leader])
            seen.append((place.path.rpartition(".")[2], place.repaired_by_wiping))
            if place.killed:
                cluster.nodes[leader].kill()
                cluster.nodes[leader].start()
            await cluster.settle()
            assert damage.places == []
            # Until then, the leader answers with an error for the batch.
            await cluster.until(cluster.hardware.mended)
            assert [record.value for record in await cluster.read("t")] == values
        return seen

    kinds = simulate(3, scenario, shape=SETTINGS).result
    assert ("log", True) in kinds
    assert len(set(kinds)) > 1


def test_a_replica_is_not_thrown_away_while_no_other_is_in_sync() -> None:
    async def scenario(cluster: Cluster) -> None:
        await filled(cluster)
        damage = Damage(cluster.hardware, random.Random(1))
        leader = cluster.leader("t")
        assert leader is not None
        place = None
        while place is None or not place.repaired_by_wiping:
            place = damage.flip(cluster.nodes[leader])
        for node_id, machine in cluster.nodes.items():
            if node_id != leader:
                machine.kill()
        assert not damage.repair()
        assert damage.places

    simulate(1, scenario, shape=SETTINGS)
