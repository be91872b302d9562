"""``tidelog producer-perf-test``, also installed as ``kafka-producer-perf-test``: measures how fast records are produced.

Flags and summary lines are those of Kafka's tool; librdkafka is the client. Latency is the time from the produce call to the
acknowledgement; with transactions a record is counted when it is acknowledged, before its transaction is committed.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

from tidelog.cli import client_settings, entry, progress, refusal
from tidelog.cli.connection_options import bootstrap_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import perf_transactions
from tidelog.cli.tools.perf_metrics import Metrics
from tidelog.cli.tools.perf_transactions import Transactions

MAX_SAMPLES = 500_000
"""Latencies kept for percentiles; of longer runs only every n-th."""
MEBIBYTE = 1024 * 1024
CLIENT_ID = "perf-producer-client"
FILE = click.Path(exists=True, dir_okay=False)


@dataclass(slots=True)
class Latencies:
    """The latencies of one interval of a run. ``every``: which records are kept for percentiles."""

    every: int
    began: float = field(default_factory=time.perf_counter)
    count: int = 0
    size: int = 0
    total_ms: float = 0.0
    longest_ms: float = 0.0
    samples: list[float] = field(default_factory=list)

    def add(self, latency_ms: float, size: int) -> None:
        """Adds an acknowledged record of ``size`` bytes."""
        if self.count % self.every == 0:
            self.samples.append(latency_ms)
        self.count += 1
        self.size += size
        self.total_ms += latency_ms
        self.longest_ms = max(self.longest_ms, latency_ms)

    def line(self, now: float, what: str = "records sent", percentiles: bool = True) -> str:
        """The summary in the format of Kafka's tool."""
        seconds = max(now - self.began, 1e-9)
        text = (
            f"{self.count} {what}, {self.count / seconds:.6f} records/sec ({self.size / seconds / MEBIBYTE:.2f} MB/sec), "
            f"{self.total_ms / max(self.count, 1):.2f} ms avg latency, {self.longest_ms:.2f} ms max latency"
        )
        if not percentiles:
            return f"{text}."
        ordered = sorted(self.samples) or [0.0]
        marks = [(0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th")]
        return f"{text}, " + ", ".join(f"{ordered[int(mark * len(ordered))]:.0f} ms {name}" for mark, name in marks) + "."


@click.command("producer-perf-test", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@click.option("--topic", required=True, help="The topic to produce to.")
@click.option("--num-records", required=True, type=click.IntRange(min=1), help="How many records.")
@click.option("--throughput", required=True, type=float, help="At most so many records a second; -1 for no bound.")
@click.option("--record-size", type=click.IntRange(min=1), help="Bytes of random letters each.")
@click.option("--payload-file", type=FILE, help="A file with payloads, of which each record takes one by chance.")
@click.option("--payload-delimiter", default="\\n", show_default=True, help="What ends a payload in that file.")
@click.option("--payload-monotonic", is_flag=True, help="Payloads are 0, 1, 2 and so on.")
@click.option("--command-property", multiple=True, metavar="NAME=VALUE", help="A setting of the producer; words may follow.")
@click.option("--producer-props", multiple=True, metavar="NAME=VALUE", help="The old name of --command-property.")
@click.option("--command-config", type=FILE, help="A file with settings of the producer.")
@click.option("--producer.config", "producer_config", type=FILE, help="The old name of --command-config.")
@click.option("--warmup-records", type=click.IntRange(min=0), default=0, help="Left out of the second summary.")
@click.option("--reporting-interval", type=click.IntRange(min=1), default=5000, show_default=True, help="ms between two lines.")
@click.option("--print-metrics", is_flag=True, help="Print librdkafka's statistics at the end.")
@click.option("--transactional-id", metavar="ID", help="Send in transactions, as this producer.")
@click.option(
    "--transaction-duration-ms",
    type=click.IntRange(min=1),
    help=f"Send in transactions, each committed after so many ms. [{perf_transactions.DEFAULT_DURATION_MS} with an id]",
)
@click.argument("more", nargs=-1)
def command(**flags: Any) -> None:
    """Produce records as fast as is wanted, and say how fast it was."""
    if sum([flags["record_size"] is not None, flags["payload_file"] is not None, flags["payload_monotonic"]]) != 1:
        refusal.usage("Exactly one of --record-size, --payload-file and --payload-monotonic is needed")
    pairs = [*flags["producer_props"], *flags["command_property"], *flags["more"]]
    with refusal.one_line("Error: "):
        java = client_settings.gather([flags["producer_config"], flags["command_config"]], pairs)
        if flags["bootstrap_server"]:
            java["bootstrap.servers"] = flags["bootstrap_server"]
        refusal.required(java.get("bootstrap.servers"))
        duration_ms = perf_transactions.settings(java, flags["transactional_id"], flags["transaction_duration_ms"])
        config = {"client.id": CLIENT_ID, "partitioner": "murmur2_random", "log_level": "2"} | client_settings.to_librdkafka(java)
        client_settings.check_reachable(java, java["bootstrap.servers"])
        Run(config, flags, duration_ms).measure()


def payloads(flags: dict[str, Any]) -> Callable[[int], bytes]:
    """Returns a function for the payload of the n-th record."""
    rng = random.Random(0)
    if flags["payload_monotonic"]:
        return lambda number: b"%d" % number
    if flags["record_size"] is not None:
        fixed = bytes(rng.choices(range(ord("A"), ord("Z") + 1), k=flags["record_size"]))
        return lambda number: fixed
    delimiter = flags["payload_delimiter"].encode().decode("unicode_escape").encode()
    with open(flags["payload_file"], "rb") as file:
        choices = [part for part in file.read().split(delimiter) if part]
    if not choices:
        raise CommandFailed(f"{flags['payload_file']} holds no payload.")
    return lambda number: rng.choice(choices)


class Run:
    """One measurement."""

    def __init__(self, config: dict[str, Any], flags: dict[str, Any], duration_ms: int | None) -> None:
        """``duration_ms`` of each transaction; None for none. CommandFailed when librdkafka refuses a setting."""
        from confluent_kafka import KafkaException, Producer

        self._flags = flags
        every = max(1, flags["num_records"] // MAX_SAMPLES)
        self._every = every
        self._whole, self._window = Latencies(every), Latencies(every)
        self._steady: Latencies | None = None
        self._failed = 0
        self._error = ""
        self._metrics = Metrics("producer") if flags["print_metrics"] else None
        try:
            self._producer = Producer(config | (self._metrics.settings if self._metrics is not None else {}))
        except KafkaException as error:
            raise CommandFailed(f"The producer cannot be made: {error.args[0].str()}") from error
        self._transactions = None if duration_ms is None else Transactions(self._producer, duration_ms)

    def measure(self) -> None:
        """Produces and prints the summaries. CommandFailed when records were lost."""
        number_of, throughput = self._flags["num_records"], self._flags["throughput"]
        payload = payloads(self._flags)
        began = time.perf_counter()
        with progress.bar("sent", number_of) as told:
            for number in range(number_of):
                self._send_in_turn(payload(number))
                if throughput > 0:
                    self._wait_until(began + (number + 1) / throughput)
                if number % 64 == 0:
                    self._producer.poll(0)
                if number % 4096 == 0:
                    told(number)
            if self._transactions is not None:
                self._transactions.commit()
            self._producer.flush()
        now = time.perf_counter()
        print(self._whole.line(now))
        if self._steady is not None:
            print(self._steady.line(now, "steady state records sent"))
        if self._metrics is not None:
            self._metrics.settle(self._producer.poll)
            self._metrics.print()
        if self._failed:
            raise CommandFailed(f"{self._failed} records were not delivered: {self._error}")

    def _send_in_turn(self, value: bytes) -> None:
        """Sends it, in a transaction where that is wanted."""
        if self._transactions is None:
            self._send(value)
            return
        now = time.perf_counter()
        self._transactions.before_send(now)
        self._send(value)
        self._transactions.after_send(now)

    def _send(self, value: bytes) -> None:
        sent = time.perf_counter()

        def delivered(error: Any, message: Any) -> None:
            self._delivered(error, sent, len(value))

        while True:
            try:
                self._producer.produce(self._flags["topic"], value=value, on_delivery=delivered)
                return
            except BufferError:
                self._producer.poll(0.05)

    def _wait_until(self, when: float) -> None:
        left = when - time.perf_counter()
        if left > 0:
            self._producer.poll(left)
            time.sleep(max(0.0, when - time.perf_counter()))

    def _delivered(self, error: Any, sent: float, size: int) -> None:
        if error is not None:
            self._failed += 1
            self._error = error.str()
            return
        now = time.perf_counter()
        latency_ms = (now - sent) * 1000
        self._whole.add(latency_ms, size)
        warmup = self._flags["warmup_records"]
        if warmup and self._whole.count > warmup:
            if self._steady is None:
                self._steady = Latencies(self._every)
            self._steady.add(latency_ms, size)
        self._window.add(latency_ms, size)
        if (now - self._window.began) * 1000 >= self._flags["reporting_interval"]:
            print(self._window.line(now, percentiles=False))
            sys.stdout.flush()
            self._window = Latencies(self._every)


def main() -> None:
    """``kafka-producer-perf-test``."""
    entry.run(command, "kafka-producer-perf-test")


if __name__ == "__main__":
    main()
