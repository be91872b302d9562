"""The load: Apache Kafka's ProducerPerformance, and Bench.java for what that does not cover; a JVM for each run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.interop.java import LOG4J
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.builder import RecordData, build_batch
from tools.jars import compiled, ensure

SOURCES = tuple(Path(__file__).with_name(name) for name in ("Bench.java", "OpenMessaging.java"))
CLIENT_FLAGS = ("-Xms256M", "-Xmx1G")
RUN_LIMIT_S = 600
PRODUCED = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\).*?([\d.]+) ms 99th", re.M)


class LoadFailed(Exception):
    """A load generator ended with an error; the text is the end of what it printed."""


def classes() -> Path:
    """The folder with the compiled load generators. Raises JarsMissing."""
    return compiled("bench", SOURCES, ensure())


def java_command(main: str, *args: str) -> list[str]:
    """What runs a class of Kafka's, or one of ours."""
    path = f"{classes()}:{ensure()}/*"
    return ["java", *CLIENT_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=error", "-cp", path, main, *args]


def run(main: str, *args: str) -> str:
    """Run a class; what it printed. Raises LoadFailed."""
    try:
        done = subprocess.run(java_command(main, *args), capture_output=True, text=True, check=False, timeout=RUN_LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise LoadFailed(f"{main} was not done after {RUN_LIMIT_S} s") from late
    if done.returncode:
        raise LoadFailed(f"{main} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


def produce(
    bootstrap: str, topic: str, records: int, size: int, batch: int, acks: str, codec: str, *more: str
) -> dict[str, float]:
    """ProducerPerformance at full speed: MiB/s, records/s, the client's own p99 in ms. ``more``: further arguments for it."""
    properties = [f"bootstrap.servers={bootstrap}", f"acks={acks}", f"batch.size={batch}", f"compression.type={codec}"]
    args = ["--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1", *more]
    printed = run("org.apache.kafka.tools.ProducerPerformance", *args, "--producer-props", *properties)
    last = PRODUCED.findall(printed)
    if not last or int(last[-1][0]) != records:
        raise LoadFailed(f"ProducerPerformance did not send {records} records:\n{printed[-1500:]}")
    _, per_s, mb_per_s, p99 = last[-1]
    return {"records_per_s": float(per_s), "mb_per_s": float(mb_per_s), "p99_ms": float(p99)}


def bench(command: str, *args: object) -> dict[str, Any]:
    """A command of Bench.java and its result."""
    printed = run("Bench", command, *map(str, args)).strip().splitlines()
    result: dict[str, Any] = json.loads(printed[-1])
    return result


def produce_request(topic: str, size: int) -> tuple[bytes, int]:
    """A Produce v12 request (acks=1), the newest that names topics, with one record of ``size`` bytes for partition 0, its length
    in front, and where in the answer (its length included) the partition's error code stands."""
    records = bytes(build_batch([RecordData(None, b"x" * size, 1_700_000_000_000, ())]))
    partition = PartitionProduceData(index=0, records=records)
    topics = [TopicProduceData(name=topic, partition_data=[partition])]
    body = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)
    request = bytes(encode_request(RequestHeader(ApiKey.PRODUCE, 12, 1, None), body))
    # length, correlation id, tags, count of topics, the topic's name and its length, count of partitions, the partition's index
    return request, 4 + 4 + 1 + 1 + 1 + len(topic) + 1 + 4
