"""Causes that lie in the next record, or in the time that is left to read it."""

from __future__ import annotations

import asyncio
import json
import os
import time

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, TopicPartition

from tests.causes.scenario import Answer, Scenario
from tests.causes.scene import WAIT_S, Scene
from tidelog.testing.schema_registry.server import SchemaRegistry

ORDERS = [json.dumps({"order": number}).encode() for number in range(5)]


def retries(scene: Scene, member: Consumer, at: int) -> None:
    """What an application does that fails at the record and tries again."""
    member.consume(1, 0.1)
    member.seek(TopicPartition(scene.topic, 0, at))


def poison(scene: Scene) -> Answer:
    """An application that reads JSON gets to something else."""
    scene.create()
    scene.write(*ORDERS, b"\xff\xfe\x00poison", *ORDERS)
    member = scene.reader(len(ORDERS))
    return scene.why(lambda: retries(scene, member, len(ORDERS)))


def unknown_schema(scene: Scene) -> Answer:
    """The registry has schema 1, and the next record says 77."""
    scene.create()
    with SchemaRegistry() as registry:
        known = registry.register(f"{scene.topic}-value", {"type": "string"})
        framed = [b"\0" + known.to_bytes(4, "big") + b"\x02a"] * 4
        scene.write(*framed, b"\0" + (77).to_bytes(4, "big") + b"\x02a")
        member = scene.reader(len(framed))
        scene.registry = registry.url
        return scene.why(lambda: retries(scene, member, len(framed)))


def large_batch(scene: Scene) -> Answer:
    """A client that takes answers of 2 MB at most gets to a record of 3 MB."""
    scene.create(max_message_bytes="5000000")
    scene.produce(3)
    scene.write(os.urandom(3_000_000), message_max_bytes=5_000_000)
    limits = {"receive_message_max_bytes": 2_000_000, "fetch_max_bytes": 1_900_000, "message_max_bytes": 1_900_000}
    member = scene.reader(3, **limits)
    return scene.why(lambda: member.poll(0.1))


def damaged(scene: Scene) -> Answer:
    """A byte of the next batch turns on the disk. aiokafka's consumer checks sums, and raises at each look."""
    scene.create()
    scene.write(b"first" * 10)
    with asyncio.Runner() as runner:
        return _with_damage(scene, runner)


def _with_damage(scene: Scene, runner: asyncio.Runner) -> Answer:
    async def joined() -> AIOKafkaConsumer:
        member = AIOKafkaConsumer(
            scene.topic,
            bootstrap_servers=scene.servers,
            group_id=scene.group,
            client_id="app",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
        )
        await member.start()
        await asyncio.wait_for(member.getone(), WAIT_S)
        await member.commit()
        return member

    member = runner.run(joined())
    scene.write(b"second" * 10, b"third" * 10)
    (log,) = scene.directory.rglob(f"{scene.topic}-0/*.log")
    with log.open("r+b") as file:
        file.seek(log.read_bytes().index(b"second"))
        file.write(b"S")
    refused: list[Exception] = []

    async def look() -> None:
        try:
            await asyncio.wait_for(member.getmany(timeout_ms=100), 1)
        except (AioKafkaError, TimeoutError) as problem:
            refused.append(problem)

    try:
        answer = scene.why(lambda: runner.run(look()))
        assert any(isinstance(each, AioKafkaError) for each in refused), "the client took the damaged batch"
        return answer
    finally:
        runner.run(asyncio.wait_for(member.stop(), 10))


def soon_removed(scene: Scene) -> Answer:
    """Records of 58 s ago, which the topic keeps for 60, and a member that reads one a second."""
    scene.create(retention_ms="60000")
    scene.write(*(b"old" for _ in range(40)), timestamp_ms=int(time.time() * 1000) - 58_000)
    member = scene.reader(1)
    offset = iter(range(2, 40))
    last = [0.0]

    def slowly() -> None:
        if time.monotonic() - last[0] > 1:
            last[0] = time.monotonic()
            scene.commit(member, next(offset))

    return scene.why(slowly)


RECORD_SCENARIOS = (
    Scenario(
        "poison",
        "five JSON records, then bytes, at which a consumer tries for ever",
        poison,
        "P10",
        "is binary, the 5 records",
        beside="G4",
    ),
    Scenario("schema", "a record with a schema id that the registry does not have", unknown_schema, "P11", "schema id 77"),
    Scenario("large-batch", "a record of 3 MB, receive.message.max.bytes=2000000", large_batch, "P9", "a batch of 3000"),
    Scenario("damaged", "a byte of the next batch was changed on the disk", damaged, "P12", "checksum"),
    Scenario(
        "retention",
        "records of 58 s ago, retention.ms=60000, one read a second",
        soon_removed,
        "P6",
        "retention.ms 60000",
    ),
)
