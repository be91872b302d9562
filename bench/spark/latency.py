"""From topic to topic: how long after a record was made does who reads the other topic have it?

``python -m bench.spark.latency MODE ...`` runs one query in a session of its own and prints its numbers as JSON, so that
another PySpark can do it (real-time mode needs 4.3). Records are made on a steady schedule with their time in the value;
stalls count for all records that they delay. Modes: ``micro-connector`` and ``micro-tidelog`` (the source's own), both into
the connector's sink; and ``real-time``, connector to connector."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

MODES = ("micro-connector", "micro-tidelog", "real-time")


def percentile(sorted_values: list[float], share: float) -> float:
    """The value that this share is not above."""
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def query(spark: Any, mode: str, bootstrap: str, source: str, target: str, folder: Path) -> Any:
    """The running query."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": source, "startingOffsets": "earliest"}
    stream = spark.readStream.format("tidelog" if mode == "micro-tidelog" else "kafka").options(**options).load()
    writer = stream.selectExpr("key", "value").writeStream.format("kafka").outputMode("update")
    writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    writer = writer.option("kafka.linger.ms", "0").option("checkpointLocation", str(folder / "checkpoint"))
    return (writer.trigger(realTime="5 minutes") if mode == "real-time" else writer.trigger(processingTime="0 seconds")).start()


def produce(bootstrap: str, topic: str, rate: int, until: float) -> None:
    """``rate`` records a second, each with the time it was due."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": 1, "log_level": 2})
    due = time.time()
    while due < until:
        time.sleep(max(0.0, due - time.time()))
        producer.produce(topic, f"{due:.6f}".encode())
        producer.poll(0)
        due += 1 / rate
    producer.flush(10)


def run(spark: Any, mode: str, bootstrap: str, *, rate: int, seconds: int, warm_up: int) -> dict[str, float]:
    """The latencies after the warm-up, in ms."""
    source, target = f"{mode}-in-{time.time_ns()}", f"{mode}-out-{time.time_ns()}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(source, 1, 1), NewTopic(target, 1, 1)]).values():
        made.result()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": target, "fetch.wait.max.ms": 10, "log_level": 2})
    consumer.assign([TopicPartition(target, 0, 0)])
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        running = query(spark, mode, bootstrap, source, target, Path(folder))
        # The schedule begins when the first record came through: how long a query takes to start is not asked here.
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(source, b"0")
        producer.flush(10)
        deadline = time.monotonic() + 120
        while (first := consumer.poll(1)) is None or first.error():
            if time.monotonic() > deadline or running.exception() is not None:
                raise SystemExit(f"{mode}: nothing came through the query: {running.exception()}")
        begin = time.time()
        until = begin + warm_up + seconds
        thread = threading.Thread(target=produce, args=(bootstrap, source, rate, until))
        thread.start()
        while time.time() < until:
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                due = float(message.value())
                if due >= begin + warm_up:
                    found.append((time.time() - due) * 1000)
        thread.join()
        running.stop()
    consumer.close()
    found.sort()
    if len(found) < rate * seconds // 2:
        raise SystemExit(f"{mode}: only {len(found)} of about {rate * seconds} records came through")
    return {"p50_ms": round(percentile(found, 0.5), 1), "p99_ms": round(percentile(found, 0.99), 1), "records": len(found)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--jars", required=True, type=Path)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--warm-up", type=int, default=15)
    asked = parser.parse_args()
    from tests.spark.session import session

    spark = session(2, jars=asked.jars)
    numbers = run(spark, asked.mode, asked.bootstrap, rate=asked.rate, seconds=asked.seconds, warm_up=asked.warm_up)
    print(json.dumps(numbers))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
