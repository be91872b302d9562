"""``python -m bench.registry_start``: how long ``tidelog registry`` takes to start over a topic with 10,000 schemas.

The schemas are Avro records of ten fields, each under a subject of its own; a node of tidelog on this machine holds the topic.
Printed are, as the median of the rounds: the replay of the records into the state alone, and a whole process from its start to
its first answer about the last id, with the CPU that it used. A process without schemas is measured beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path

from bench.report import machine
from tests.node.registry_process import RegistryProcess
from tests.unit.cli.running_node import running_node
from tidelog.cli.broker_connection import client_settings
from tidelog.client.net.aio import AsyncClient
from tidelog.registry.model import AVRO, Schema, Version
from tidelog.registry.records import SchemaEntry, write
from tidelog.registry.serving.log import SchemaLog
from tidelog.registry.state import State

SCHEMAS = 10_000
FIELDS = 10
BATCH = 500


def records(count: int) -> list[tuple[bytes, bytes | None]]:
    """As many versions, each of another schema."""
    found = []
    for number in range(1, count + 1):
        fields = [{"name": f"field_{at}", "type": ["null", "string"], "default": None} for at in range(FIELDS)]
        schema = {"type": "record", "name": f"Order{number}", "namespace": "shop.orders", "fields": fields}
        text = json.dumps(schema, separators=(",", ":"))
        found.append(write(SchemaEntry(Version(f"orders-{number}-value", 1, number, Schema(AVRO, text)))))
    return found


def replay_s(written: list[tuple[bytes, bytes | None]]) -> float:
    """One replay into a new state."""
    state = State()
    began = time.perf_counter()
    for key, value in written:
        state.replay(key, value)
    took = time.perf_counter() - began
    assert state.skipped == 0
    assert len(state.subjects()) == len(written)
    return took


async def fill(servers: str, topic: str, written: list[tuple[bytes, bytes | None]]) -> None:
    """Append the records."""
    settings = client_settings(servers, None, "bench-registry")
    async with AsyncClient(settings) as reader, AsyncClient(settings) as writer:
        log = SchemaLog(reader, writer, topic, 1, lambda: time.time_ns() // 1_000_000)
        await log.prepare()
        for at in range(0, len(written), BATCH):
            await log.append(written[at : at + BATCH])


def start_s(servers: str, topic: str, last_id: int) -> tuple[float, float]:
    """One process: seconds from its start to its first answer, and seconds of CPU from its start to its end."""
    process = RegistryProcess(servers, "--topic", topic, "--group", topic)
    used = _children_cpu_s()
    began = time.perf_counter()
    process.start()
    try:
        path = f"/schemas/ids/{last_id}" if last_id else "/subjects"
        urllib.request.urlopen(process.url + path).read()
        took = time.perf_counter() - began
    finally:
        process.stop()
    return took, _children_cpu_s() - used


def _children_cpu_s() -> float:
    """Of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.registry_start", description=__doc__)
    parser.add_argument("--schemas", type=int, default=SCHEMAS)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    written = records(args.schemas)
    print(machine())
    print(f"{args.schemas} schemas, {sum(len(value or b'') for _, value in written) / 1e6:.1f} MB of values")
    replays = [replay_s(written) for _ in range(args.rounds)]
    print(f"replay alone: {statistics.median(replays):.2f} s ({min(replays):.2f} to {max(replays):.2f})")
    with tempfile.TemporaryDirectory() as folder, running_node(Path(folder)) as servers:
        asyncio.run(fill(servers, "full", written))
        for topic, last_id in (("empty", 0), ("full", args.schemas)):
            rounds = [start_s(servers, topic, last_id) for _ in range(args.rounds)]
            for what, values in zip(("s", "s of CPU"), zip(*rounds, strict=True), strict=True):
                print(
                    f"a process, topic {topic}: {statistics.median(values):.2f} {what} ({min(values):.2f} to {max(values):.2f})"
                )


if __name__ == "__main__":
    main()
