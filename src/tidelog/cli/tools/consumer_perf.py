"""``tidelog consumer-perf-test``, also installed as ``kafka-consumer-perf-test``: measures how fast records are consumed.

Flags and columns are those of Kafka's tool; librdkafka is the client. The time until partitions were assigned is reported
separately from the time in which records arrived.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from tidelog.cli import client_settings, entry, progress, refusal
from tidelog.cli.connection_options import bootstrap_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.java_dates import formatter
from tidelog.cli.tools.perf_metrics import Metrics

MEBIBYTE = 1024 * 1024
CLIENT_ID = "perf-consumer-client"
BATCH = 1000
DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"
RESULTS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
FILE = click.Path(exists=True, dir_okay=False)


@dataclass(frozen=True, slots=True)
class Span:
    """Records and bytes received in ``elapsed_ms``, of which ``rebalance_ms`` passed without partitions."""

    records: int
    size: int
    elapsed_ms: float
    rebalance_ms: float

    def columns(self) -> str:
        """The columns after the times."""
        seconds = max(self.elapsed_ms / 1000, 1e-9)
        fetch_ms = max(self.elapsed_ms - self.rebalance_ms, 0.0)
        fetch_seconds = max(fetch_ms / 1000, 1e-9)
        mebibytes = self.size / MEBIBYTE
        return (
            f"{mebibytes:.4f}, {mebibytes / seconds:.4f}, {self.records}, {self.records / seconds:.4f}, {self.rebalance_ms:.0f}, "
            f"{fetch_ms:.0f}, {mebibytes / fetch_seconds:.4f}, {self.records / fetch_seconds:.4f}"
        )


def _dates(ctx: click.Context, option: click.Parameter, pattern: str) -> Callable[[datetime], str]:
    try:
        return formatter(pattern)
    except ValueError as error:
        raise click.BadParameter(f"{pattern!r}: {error}") from error


@click.command("consumer-perf-test", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@click.option("--topic", help="The topic to consume.")
@click.option("--include", metavar="REGEX", help="Topics to consume, by a regular expression.")
@click.option("--num-records", type=click.IntRange(min=1), help="How many records. Required.")
@click.option("--messages", type=click.IntRange(min=1), help="The old name of --num-records.")
@click.option("--group", help="The consumer group. [a new one]")
@click.option("--timeout", type=int, default=10_000, show_default=True, help="End when no record came for so many ms.")
@click.option("--from-latest", is_flag=True, help="Begin with the newest record where the group has no offset.")
@click.option("--fetch-size", type=click.IntRange(min=1), default=1 << 20, help="max.partition.fetch.bytes. [1048576]")
@click.option("--socket-buffer-size", type=click.IntRange(min=0), default=2 << 20, help="receive.buffer.bytes. [2097152]")
@click.option("--command-property", multiple=True, metavar="NAME=VALUE", help="A setting of the consumer.")
@click.option("--command-config", type=FILE, help="A file with settings of the consumer.")
@click.option("--consumer.config", "consumer_config", type=FILE, help="The old name of --command-config.")
@click.option("--show-detailed-stats", is_flag=True, help="A line every --reporting-interval.")
@click.option("--reporting-interval", type=click.IntRange(min=1), default=5000, show_default=True, help="ms between two lines.")
@click.option("--hide-header", is_flag=True, help="No title line.")
@click.option(
    "--date-format",
    metavar="PATTERN",
    default=DATE_FORMAT,
    show_default=True,
    callback=_dates,
    help="How times are printed, as Java's SimpleDateFormat takes it.",
)
@click.option("--print-metrics", is_flag=True, help="Print librdkafka's statistics at the end.")
def command(**flags: Any) -> None:
    """Consume records, and say how fast it was."""
    refusal.required(flags["bootstrap_server"])
    if (flags["topic"] is None) == (flags["include"] is None):
        refusal.usage("Name what to read: one of --topic and --include")
    if (flags["num_records"] is None) == (flags["messages"] is None):
        refusal.usage("Say how many records to read with --num-records (--messages is its old name; not both)")
    with refusal.one_line("Error: "):
        config = settings(flags)
        client_settings.check_reachable(_own(flags), flags["bootstrap_server"])
        _measure(config, flags)


def settings(flags: dict[str, Any]) -> dict[str, Any]:
    """librdkafka's settings."""
    own = _own(flags)
    java = {
        "group.id": f"perf-consumer-{random.randrange(100_000)}",
        "receive.buffer.bytes": str(flags["socket_buffer_size"]),
        "max.partition.fetch.bytes": str(flags["fetch_size"]),
        "auto.offset.reset": "latest" if flags["from_latest"] else "earliest",
        "check.crcs": "false",
    } | own
    java["bootstrap.servers"] = flags["bootstrap_server"]
    if flags["group"]:
        java["group.id"] = flags["group"]
    return {"client.id": CLIENT_ID, "log_level": "2", "queued.min.messages": "1000000"} | client_settings.to_librdkafka(java)


def _own(flags: dict[str, Any]) -> dict[str, str]:
    """The settings of files and properties."""
    return client_settings.gather([flags["consumer_config"], flags["command_config"]], flags["command_property"])


def _measure(config: dict[str, Any], flags: dict[str, Any]) -> None:
    from confluent_kafka import Consumer, KafkaException

    detailed = flags["show_detailed_stats"]
    if not flags["hide_header"]:
        print(("time, threadId, " if detailed else "start.time, end.time, ") + RESULTS)
    metrics = Metrics("consumer") if flags["print_metrics"] else None
    try:
        consumer = Consumer(config | (metrics.settings if metrics is not None else {}))
    except KafkaException as error:
        raise CommandFailed(f"The consumer cannot be made: {error.args[0].str()}") from error
    assigned_at: list[float] = []
    pattern = flags["topic"] if flags["topic"] is not None else f"^({flags['include']})$"
    consumer.subscribe([pattern], on_assign=lambda *_: assigned_at.append(time.perf_counter()))
    started, began = datetime.now(), time.perf_counter()  # noqa: DTZ005
    try:
        with progress.bar("received", flags["num_records"] or flags["messages"]) as told:
            records, size = _consume(consumer, flags, began, assigned_at, told)
        ended, elapsed_ms = datetime.now(), (time.perf_counter() - began) * 1000  # noqa: DTZ005
        if metrics is not None:
            consumer.pause(consumer.assignment())
            metrics.settle(consumer.poll)
    finally:
        consumer.close()
    if not detailed:
        rebalance_ms = (assigned_at[0] - began) * 1000 if assigned_at else 0.0
        span = Span(records, size, elapsed_ms, rebalance_ms)
        written = flags["date_format"]
        print(f"{written(started)}, {written(ended)}, {span.columns()}")
    if metrics is not None:
        metrics.print()


def _consume(
    consumer: Any, flags: dict[str, Any], began: float, assigned_at: list[float], told: Callable[[int], None]
) -> tuple[int, int]:
    """Consumes; returns the number of records and bytes."""
    wanted = flags["num_records"] or flags["messages"]
    records = size = 0
    last = reported = began
    before = (0, 0)
    while records < wanted:
        batch = [message for message in consumer.consume(min(BATCH, wanted - records), 0.1) if message.error() is None]
        now = time.perf_counter()
        if batch:
            last = now
            records += len(batch)
            told(records)
            size += sum(len(message) + len(message.key() or b"") for message in batch)
        elif (now - last) * 1000 >= flags["timeout"]:
            print(f"WARNING: Stopped early: no record arrived for {flags['timeout']} ms. --timeout sets how long to wait.")
            break
        if flags["show_detailed_stats"] and (now - reported) * 1000 >= flags["reporting_interval"]:
            waited = sum((at - reported) * 1000 for at in assigned_at[:1] if at >= reported)
            span = Span(records - before[0], size - before[1], (now - reported) * 1000, waited)
            print(f"{flags['date_format'](datetime.now())}, 0, {span.columns()}", flush=True)  # noqa: DTZ005
            reported, before = now, (records, size)
    return records, size


def main() -> None:
    """``kafka-consumer-perf-test``."""
    entry.run(command, "kafka-consumer-perf-test")


if __name__ == "__main__":
    main()
