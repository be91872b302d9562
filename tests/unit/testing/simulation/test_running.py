"""Users' own code on a simulated cluster."""

import asyncio
import os
import random
import subprocess
import sys
import time

import pytest

from tidelog.testing.simulation import Cluster, Shape, SimulationFailed, simulate

pytestmark = pytest.mark.timeout(300)


async def orders(cluster: Cluster) -> list[bytes | None]:
    """What the guide shows: records that are acknowledged while nodes die."""
    await cluster.create_topic("orders", 2)
    for number in range(6):
        await cluster.produce("orders", f"order {number}", partition=number % 2)
        await asyncio.sleep(1)
    await cluster.settle()
    return [record.value for record in await cluster.read("orders")]


def test_what_was_acknowledged_is_read_after_faults() -> None:
    run = simulate(3, orders, faults=("kill", "isolate"))
    assert sorted(run.result) == [b"order %d" % number for number in range(6)]
    assert run.virtual_s > 6
    assert sum(run.faults.values()) > 0


def test_the_same_seed_gives_the_same_run_byte_for_byte_under_every_hash_seed_and_another_seed_another_one() -> None:
    program = (
        "from tests.unit.testing.simulation.test_running import orders; from tidelog.testing.simulation import simulate; "
        "print(simulate({seed}, orders, faults=('kill', 'resets')).digest)"
    )
    printed = []
    for seed, hash_seed in ((5, "0"), (5, "4242"), (6, "0")):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", program.format(seed=seed)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    assert printed[0] != printed[2]


def test_a_failure_names_its_seed_the_moment_and_the_nodes() -> None:
    async def scenario(cluster: Cluster) -> None:
        await asyncio.sleep(5)
        raise ValueError("not what we wanted")

    with pytest.raises(SimulationFailed, match=r"seed 4, at \d.*ValueError: not what we wanted; nodes 1: serving") as failed:
        simulate(4, scenario, shape=Shape(brokers=1))
    assert isinstance(failed.value.__cause__, ValueError)


def test_a_scenario_that_never_ends_is_a_failure_at_its_limit() -> None:
    async def scenario(cluster: Cluster) -> None:
        await asyncio.Event().wait()

    with pytest.raises(SimulationFailed, match="not within 30 s: the scenario ends"):
        simulate(1, scenario, shape=Shape(brokers=1), limit_s=30)


def test_clocks_and_chance_are_the_worlds_in_a_run_and_ones_own_again_afterwards() -> None:
    async def scenario(cluster: Cluster) -> tuple[float, float, float, bytes]:
        began = time.monotonic()
        await asyncio.sleep(60)
        return time.monotonic() - began, time.time(), random.random(), os.urandom(8)

    random.seed(11)
    expected = random.Random(11).random()
    honest = time.monotonic
    first, second = (simulate(9, scenario, shape=Shape(brokers=1)).result for _ in range(2))
    assert first == second
    assert first[0] == pytest.approx(60)
    assert first[1] > 1_800_000_000
    assert random.random() == expected
    assert time.monotonic is honest


def test_processes_have_machines_of_their_own_and_cuts_keep_bytes_from_passing() -> None:
    async def scenario(cluster: Cluster) -> tuple[str, int | None, int | None]:
        await cluster.create_topic("t")
        first = cluster.leader("t")
        assert first is not None

        async def elsewhere() -> str:
            client = cluster.client()
            await client.refresh("t")
            return client.loop.name

        name = await cluster.process(elsewhere)
        cluster.isolate(first)
        await cluster.until(lambda: cluster.leader("t") not in (None, first))
        second = cluster.leader("t")
        cluster.heal()
        await cluster.settle()
        return name, first, second

    name, first, second = simulate(2, scenario).result
    assert name != "client 1"
    assert first != second


def test_what_fails_on_another_machine_is_told_to_who_waits_for_it() -> None:
    async def scenario(cluster: Cluster) -> str:
        async def elsewhere() -> None:
            raise KeyError("there")

        try:
            await cluster.process(elsewhere)
        except KeyError as error:
            return str(error)
        return ""

    assert simulate(1, scenario, shape=Shape(brokers=1)).result == "'there'"


def test_a_kind_of_fault_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no such kind of fault: earthquake; there are kill, stop"):
        simulate(1, orders, faults=("earthquake",))


def test_aiokafka_runs_in_virtual_time() -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def scenario(cluster: Cluster) -> list[bytes]:
        await cluster.create_topic("orders")
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers, enable_idempotence=True)
        await producer.start()
        leader = cluster.leader("orders")
        assert leader is not None
        for number in range(4):
            await producer.send_and_wait("orders", b"%d" % number)
            if number == 1:
                cluster.nodes[leader].kill()
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            "orders", bootstrap_servers=cluster.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
        )
        await consumer.start()
        values = [(await consumer.getone()).value for _ in range(4)]
        await consumer.stop()
        return values

    assert simulate(7, scenario).result == [b"0", b"1", b"2", b"3"]
