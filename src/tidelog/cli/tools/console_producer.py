"""``tidelog console-producer``, also installed as ``kafka-console-producer``: sends lines of stdin as records to a topic.

Flags and reader properties are those of Kafka's tool. librdkafka is the client; keys map to the same partitions as in Java's
producer (murmur2). A line is sent immediately: delivery does not wait for the next one.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import client_settings, entry, refusal
from tidelog.cli.connection_options import bootstrap_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.line_reader import Line, LineReader

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer

NAME = "console-producer"
DEFAULT_READER = "org.apache.kafka.tools.LineMessageReader"
POLL_S = 0.1
LAST_LOOK_S = 2.0
"""How long an interrupted tool asks for the topic of the line that it holds."""
"""Timeout of a poll for deliveries."""
LOG_LEVEL = "2"
"""Critical messages only: errors are also reported by callback."""
PASSING = frozenset({"LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PART"})
FILE = click.Path(exists=True, dir_okay=False)


@click.command(NAME, context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@click.option("--topic", help="The topic to produce to. Required.")
@click.option("--command-property", multiple=True, metavar="NAME=VALUE", help="A setting of the producer.")
@click.option("--producer-property", multiple=True, metavar="NAME=VALUE", help="The old name of --command-property.")
@click.option("--command-config", type=FILE, help="A file with settings of the producer.")
@click.option("--producer.config", "producer_config", type=FILE, help="The old name of --command-config.")
@click.option("--reader-property", multiple=True, metavar="NAME=VALUE", help="parse.key=true and others: see the guide.")
@click.option("--property", "properties", multiple=True, metavar="NAME=VALUE", help="The old name of --reader-property.")
@click.option("--reader-config", type=FILE, help="A file with properties of the reader.")
@click.option("--line-reader", default=DEFAULT_READER, show_default=True, metavar="CLASS", help="How lines are read.")
@click.option("--sync", is_flag=True, help="Wait for each record before the next one is read.")
@click.option(
    "--compression-codec", is_flag=False, flag_value="gzip", metavar="[CODEC]", help="none, gzip, snappy, lz4 or zstd. [gzip]"
)
@click.option("--batch-size", type=click.IntRange(min=1), help="batch.size in bytes. [16384]")
@click.option("--max-partition-memory-bytes", type=click.IntRange(min=1), help="The old name of --batch-size; it wins.")
@click.option("--max-memory-bytes", type=click.IntRange(min=1), help="buffer.memory in bytes. [33554432]")
@click.option("--max-block-ms", type=click.IntRange(min=0), default=60_000, help="How long to wait for the topic. [60000]")
@click.option("--message-send-max-retries", type=click.IntRange(min=0), help="retries. [3]")
@click.option("--retry-backoff-ms", type=click.IntRange(min=1), help="retry.backoff.ms. [100]")
@click.option("--request-required-acks", metavar="ACKS", help="acks: all, 1 or 0. [all]")
@click.option("--request-timeout-ms", type=click.IntRange(min=1), help="request.timeout.ms. [1500]")
@click.option("--metadata-expiry-ms", type=click.IntRange(min=10), help="metadata.max.age.ms. [300000]")
@click.option("--socket-buffer-size", type=click.IntRange(min=0), help="send.buffer.bytes. [102400]")
@click.option("--timeout", type=click.IntRange(min=0), help="linger.ms: how long a batch waits for more. [1000]")
def command(**flags: Any) -> None:
    """Send each line of stdin to a topic."""
    refusal.required(flags["bootstrap_server"])
    if not flags["topic"]:
        refusal.usage('Missing required argument "[topic]"')
    _both(flags, "properties", "reader_property", "--property", "--reader-property")
    _both(flags, "producer_property", "command_property", "--producer-property", "--command-property")
    _both(flags, "producer_config", "command_config", "--producer.config", "--command-config")
    with refusal.one_line(""):
        reader = _reader(flags)
        config = settings(flags)
        client_settings.check_reachable(_own(flags), flags["bootstrap_server"])
        sender = Sender(config, flags["topic"], sync=flags["sync"], max_block_ms=flags["max_block_ms"])
        sender.send_all(reader.read(_lines()))


def settings(flags: dict[str, Any]) -> dict[str, Any]:
    """librdkafka's settings. Flags override files and properties; Kafka's defaults for this tool have the lowest priority."""
    own = _own(flags)
    named = {
        "acks": flags["request_required_acks"],
        "batch.size": flags["max_partition_memory_bytes"] or flags["batch_size"],
        "buffer.memory": flags["max_memory_bytes"],
        "compression.type": flags["compression_codec"],
        "linger.ms": flags["timeout"],
        "metadata.max.age.ms": flags["metadata_expiry_ms"],
        "request.timeout.ms": flags["request_timeout_ms"],
        "retries": flags["message_send_max_retries"],
        "retry.backoff.ms": flags["retry_backoff_ms"],
        "send.buffer.bytes": flags["socket_buffer_size"],
    }
    java = DEFAULTS | own | {name: str(value) for name, value in named.items() if value is not None}
    java["bootstrap.servers"] = flags["bootstrap_server"]
    if "enable.idempotence" not in java and java["acks"] in {"all", "-1"} and java["retries"] != "0":
        java["enable.idempotence"] = "true"
    return {"partitioner": "murmur2_random"} | client_settings.to_librdkafka(java)


def _own(flags: dict[str, Any]) -> dict[str, str]:
    """The settings of files and properties."""
    return client_settings.gather(
        [flags["producer_config"], flags["command_config"]], [*flags["producer_property"], *flags["command_property"]]
    )


DEFAULTS = {
    "acks": "-1",
    "batch.size": "16384",
    "client.id": NAME,
    "delivery.timeout.ms": "120000",
    "linger.ms": "1000",
    "request.timeout.ms": "1500",
    "retries": "3",
}
"""The defaults of Kafka's tool that matter here."""


class Sender:
    """A producer for one topic that reports failed deliveries on stderr."""

    def __init__(self, config: dict[str, Any], topic: str, *, sync: bool, max_block_ms: int) -> None:
        """CommandFailed when librdkafka refuses a setting."""
        from confluent_kafka import KafkaException
        from confluent_kafka import Producer as RealProducer

        self._topic = topic
        self._sync = sync
        self._max_block_s = max_block_ms / 1000
        self._failed = 0
        self._warned: set[str] = set()
        self._closing = threading.Event()
        try:
            self._producer: Producer = RealProducer(
                {"log_level": LOG_LEVEL, **config, "error_cb": lambda error: self._warn(error.str())}
            )
        except KafkaException as error:
            raise CommandFailed(f"The producer cannot be made: {error.args[0].str()}") from error

    def send_all(self, lines: Iterable[Line]) -> None:
        """Sends all lines; exit code 1 when one of them was not delivered."""
        watcher: threading.Thread | None = None
        first: Line | None = None
        try:
            for line in lines:
                if watcher is None:
                    first = line
                    # Before waiting for the topic, because it also reports that no broker answers.
                    watcher = threading.Thread(target=self._watch, daemon=True)
                    watcher.start()
                    self._await_topic()
                    first = None
                self._send(line)
        except KeyboardInterrupt:
            print(file=sys.stderr)
            if first is not None:
                self._send_or_report(first)
        finally:
            self._closing.set()
            if watcher is not None:
                watcher.join()
                self._producer.flush()
        if self._failed:
            raise CommandFailed(f"{self._failed} records were not delivered.")

    def _send_or_report(self, line: Line) -> None:
        """Sends the line that was read when the tool was interrupted, if its topic is there by now."""
        from confluent_kafka import KafkaException

        try:
            missing = self._producer.list_topics(self._topic, timeout=LAST_LOOK_S).topics[self._topic].error
        except KafkaException as failure:
            missing = failure.args[0]
        if missing is None:
            self._send(line)
        else:
            self._report(missing.str(), line.key, line.value)

    def _await_topic(self) -> None:
        """A metadata request for a missing topic makes the broker create it; it has a leader shortly after."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._max_block_s
        while True:
            left = max(deadline - time.monotonic(), POLL_S)
            try:
                # The list of all topics creates none: it shows whether there is anything to wait for.
                if not self._warned and self._topic not in self._producer.list_topics(timeout=left).topics:
                    self._warn_of_topic("LEADER_NOT_AVAILABLE")
                error = self._producer.list_topics(self._topic, timeout=left).topics[self._topic].error
            except KafkaException as failure:
                raise CommandFailed(
                    f"The cluster does not answer: {failure.args[0].str()}. Is a broker running at --bootstrap-server?"
                ) from failure
            if error is None:
                return
            if error.name() not in PASSING or time.monotonic() >= deadline:
                raise CommandFailed(
                    f"Topic {self._topic} cannot be had: {error.str()}. Create it with kafka-topics --create, or set "
                    "auto.create.topics.enable."
                )
            self._warn_of_topic(error.name())
            time.sleep(POLL_S)

    def _send(self, line: Line) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(
                    self._topic, key=line.key, value=line.value, headers=line.headers or None, on_delivery=self._delivered
                )
                break
            except BufferError:
                self._producer.poll(POLL_S)
            except KafkaException as error:
                self._report(error.args[0].str(), line.key, line.value)
                break
        if self._sync:
            self._producer.flush()

    def _watch(self) -> None:
        """Handles deliveries and librdkafka's errors while stdin is idle."""
        while not self._closing.is_set():
            self._producer.poll(POLL_S)

    def _delivered(self, error: Any, message: Message) -> None:
        if error is not None:
            self._report(error.str(), message.key(), message.value())

    def _report(self, reason: str, key: Any, value: Any) -> None:
        self._failed += 1
        shown = ", ".join(
            f"{name}: {'null' if part is None else f'{len(part)} bytes'}" for name, part in (("key", key), ("value", value))
        )
        print(f"ERROR Error when sending message to topic {self._topic} with {shown} with error: {reason}", file=sys.stderr)

    def _warn_of_topic(self, name: str) -> None:
        self._warn(f"The metadata response from the cluster reported a recoverable issue: {{{self._topic}={name}}}")

    def _warn(self, text: str) -> None:
        """Reports each error once: librdkafka repeats them at every attempt."""
        if text not in self._warned:
            self._warned.add(text)
            print(f"WARN [Producer clientId={NAME}] {text}", file=sys.stderr)


def _reader(flags: dict[str, Any]) -> LineReader:
    if flags["line_reader"].rpartition(".")[2] != "LineMessageReader":
        raise CommandFailed(f"There is no line reader {flags['line_reader']}; the one there is: {DEFAULT_READER}.")
    return LineReader.from_properties(
        client_settings.gather([flags["reader_config"]], [*flags["properties"], *flags["reader_property"]])
    )


def _both(flags: dict[str, Any], old: str, new: str, old_flag: str, new_flag: str) -> None:
    if flags[old] and flags[new]:
        refusal.usage(f"Options {old_flag} and {new_flag} cannot be specified together.")
    if flags[old]:
        refusal.deprecated(old_flag, new_flag)


def _lines() -> Iterator[bytes]:
    """Lines of stdin as soon as each arrives; a prompt at a terminal."""
    prompt = sys.stdin.isatty() and sys.stdout.isatty()
    while True:
        if prompt:
            print(">", end="", flush=True)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line


def main() -> None:
    """``kafka-console-producer``."""
    entry.run(command, "kafka-console-producer")


if __name__ == "__main__":
    main()
