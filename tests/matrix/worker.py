"""An idempotent producer without transactions, in a process of its own; its history is a file.

    python -m tests.matrix.worker --name NAME --bootstrap HOST:PORT,... --history FILE [--acks all|1]

It writes to the same partitions as the transactions of ``tests.transactions.worker``, so that its records are consumed by the
same groups, each once. ``--acks 1`` is a planted violation: without idempotence, but recorded as acks=all.
SIGTERM ends it when what it has sent has arrived.
"""

from __future__ import annotations

import argparse
import signal
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.transactions.worker import INPUT, PARTITIONS, QUICK, add_settings
from tidelog.testing.checker import Recorder

MOST_WAITING = 500
FLUSH_S = 20.0
IN_FLIGHT = "max.in.flight.requests.per.connection"
stopping = threading.Event()


class Steady:
    """One producer, and its notes."""

    def __init__(self, args: argparse.Namespace, recorder: Recorder, name: str) -> None:
        self.name, self.recorder, self.waiting, self.failed = name, recorder, 0, False
        safe = (
            {"enable.idempotence": True, IN_FLIGHT: args.in_flight} if args.acks == "all" else {"acks": args.acks, "retries": 0}
        )
        settings = {**QUICK, "bootstrap.servers": args.bootstrap, "linger.ms": 1, "message.timeout.ms": 0, **safe}
        self.ordered = args.acks == "all"
        self.producer = Producer(settings)

    def run(self, pace: float) -> None:
        number = 0
        while not stopping.is_set() and not self.failed:
            self.producer.poll(0)
            time.sleep(pace)
            if self.waiting < MOST_WAITING:
                number += 1
                self.send(number)
        self.producer.flush(FLUSH_S)

    def send(self, number: int) -> None:
        partition, value = number % PARTITIONS, f"{self.name}/{number}"
        told = {} if self.ordered else {"ordered": False}
        self.recorder.note(self.name, "invoke", "send", partition=f"{INPUT}-{partition}", value=value, **told)
        try:
            self.producer.produce(INPUT, value, partition=partition, on_delivery=self.delivered)
        except (KafkaException, BufferError) as failed:
            self.recorder.note(self.name, "fail", "send", value=value)
            print(f"{self.name} ends: {failed}", flush=True)
            self.failed = True
        else:
            self.waiting += 1

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        self.waiting -= 1
        if error is None:
            self.recorder.note(self.name, "ok", "send", value=message.value().decode(), offset=message.offset())
        else:
            self.recorder.note(self.name, "info", "send", value=message.value().decode(), error=error.name())
            self.failed |= error.fatal()


def main() -> None:
    parser = argparse.ArgumentParser()
    for flag in ("name", "bootstrap", "history"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("--pace", type=float, default=0.01, help="seconds between two records")
    parser.add_argument("--acks", choices=("all", "1"), default="all")
    parser.add_argument("--in-flight", type=int, default=5, help="requests on their way to a broker at once")
    parser.add_argument("--config", type=Path, help="more settings of librdkafka, as JSON")
    args = parser.parse_args()
    add_settings(args.config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    life = 0
    with Recorder(args.history) as recorder:
        while not stopping.is_set():
            life += 1
            Steady(args, recorder, f"{args.name}.{life}").run(args.pace)
            time.sleep(0.05)


if __name__ == "__main__":
    main()
