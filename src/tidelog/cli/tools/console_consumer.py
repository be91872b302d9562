"""``tidelog console-consumer``, also installed as ``kafka-console-consumer``: prints records of topics to stdout.

Flags, formatters and their properties are those of Kafka's tool, and ``--filter`` is ours. librdkafka is the client. An offset
counts as consumed, and may be committed, when its record has been printed, or the filter has left it out.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import client_settings, entry, refusal
from tidelog.cli.connection_options import bootstrap_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.consumed_record import consumed
from tidelog.cli.tools.message_formatters import DEFAULT_FORMATTER, MessageFormatter, chosen_formatter
from tidelog.cli.tools.record_filter import Wanted, record_filter
from tidelog.server.signals import ending_signals

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

NAME = "console-consumer"
BATCH = 500
"""Records per poll of the client."""
POLL_S = 0.1
METADATA_S = 5.0
EXPLAIN_S = 5.0
"""How long a group may be without partitions before a broker is asked why, and then between two questions."""
LOG_LEVEL = "2"
"""Critical messages only: errors are also delivered with the records."""
FILE = click.Path(exists=True, dir_okay=False)
PRINTED = "print.key=true, print.partition=true and others: see the guide."


@click.command(NAME, context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@click.option("--topic", help="The topic to consume.")
@click.option("--include", metavar="REGEX", help="Topics to consume, by a regular expression.")
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition, without a group.")
@click.option("--offset", metavar="OFFSET", help="Where in the partition to begin: earliest, latest or a number. [latest]")
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record where the group has no offset.")
@click.option("--group", help="The consumer group. [a new one]")
@click.option("--max-messages", type=int, help="End after so many records.")
@click.option("--timeout-ms", type=int, help="End when no record came for so long.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_uncommitted",
    show_default=True,
    help="Whether records of transactions that are not committed are printed.",
)
@click.option(
    "--formatter", "formatter_class", default=DEFAULT_FORMATTER, show_default=True, metavar="CLASS", help="How to print."
)
@click.option("--formatter-property", multiple=True, metavar="NAME=VALUE", help=PRINTED)
@click.option("--property", "properties", multiple=True, metavar="NAME=VALUE", help="The old name of --formatter-property.")
@click.option("--formatter-config", type=FILE, help="A file with properties of the formatter.")
@click.option("--key-deserializer", metavar="CLASS", help="What keys are, such as IntegerDeserializer.")
@click.option("--value-deserializer", metavar="CLASS", help="What values are.")
@click.option("--command-property", multiple=True, metavar="NAME=VALUE", help="A setting of the consumer.")
@click.option("--consumer-property", multiple=True, metavar="NAME=VALUE", help="The old name of --command-property.")
@click.option("--command-config", type=FILE, help="A file with settings of the consumer.")
@click.option("--consumer.config", "consumer_config", type=FILE, help="The old name of --command-config.")
@click.option("--filter", "filter_text", metavar="FILTER", help="Print what fulfils it: 'value.amount > 100', see the guide.")
@click.option("--skip-message-on-error", is_flag=True, help="Pass over a record that cannot be printed, instead of ending.")
@click.option("--enable-systest-events", is_flag=True, help="Also print when the consumer starts and ends.")
def command(**flags: Any) -> None:
    """Print the records of a topic."""
    _check(flags)
    wanted = None if flags["filter_text"] is None else record_filter(flags["filter_text"], time.time_ns() // 1_000_000)
    with refusal.one_line(""):
        printer = chosen_formatter(flags)
        config = settings(flags)
        client_settings.check_reachable(_own(flags), flags["bootstrap_server"])
        reading = Reading(config, printer, flags, lambda: _why_waiting(flags, config["group.id"]), wanted)
        count, wrong = reading.run()
        print(f"Processed a total of {count} messages", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def _check(flags: dict[str, Any]) -> None:
    """Checks flags that exclude or require each other."""
    refusal.required(flags["bootstrap_server"])
    if (flags["topic"] is None) == (flags["include"] is None):
        refusal.usage("Name what to read: one of --topic and --include")
    if flags["partition"] is not None and flags["topic"] is None:
        refusal.usage("--partition is a number within a topic: add --topic.")
    if flags["offset"] is not None and flags["partition"] is None:
        refusal.usage("--offset is a place in one partition: add --partition.")
    if flags["offset"] is not None and flags["from_beginning"]:
        refusal.usage("--from-beginning and --offset contradict each other: give one.")
    if flags["group"] is not None and flags["partition"] is not None:
        refusal.usage("--partition reads without a group: leave out --group.")
    offset = flags["offset"]
    if offset is not None and offset not in {"earliest", "latest"} and not offset.isdecimal():
        refusal.usage(f"--offset '{offset}' is neither earliest nor latest nor a number from 0 up.")
    pairs = (
        ("properties", "formatter_property", "--property", "--formatter-property"),
        ("consumer_property", "command_property", "--consumer-property", "--command-property"),
        ("consumer_config", "command_config", "--consumer.config", "--command-config"),
    )
    refusal.renamed(flags, pairs)


def settings(flags: dict[str, Any]) -> dict[str, Any]:
    """librdkafka's settings. CommandFailed when group or reset are given twice with different values."""
    own = _own(flags)
    groups = {group for group in (flags["group"], own.get("group.id")) if group is not None}
    if len(groups) > 1:
        raise CommandFailed(f"The group is said twice: {' and '.join(sorted(groups))}. Say it once, with --group or group.id.")
    if flags["from_beginning"] and own.get("auto.offset.reset", "earliest") != "earliest":
        raise CommandFailed(
            f"--from-beginning and auto.offset.reset={own['auto.offset.reset']} contradict each other; leave one out."
        )
    java = {"client.id": NAME, "allow.auto.create.topics": "true"} | own
    if flags["from_beginning"]:
        java["auto.offset.reset"] = "earliest"
    java.setdefault("auto.offset.reset", "latest")
    if groups:
        java["group.id"] = groups.pop()
    else:
        java["group.id"] = f"{NAME}-{random.randrange(100_000)}"
        java.setdefault("enable.auto.commit", "false")
    java["bootstrap.servers"] = flags["bootstrap_server"]
    java["isolation.level"] = flags["isolation_level"]
    return {"enable.auto.offset.store": "false"} | client_settings.to_librdkafka(java)


def _own(flags: dict[str, Any]) -> dict[str, str]:
    """The settings of files and properties."""
    return client_settings.gather(
        [flags["consumer_config"], flags["command_config"]], [*flags["consumer_property"], *flags["command_property"]]
    )


def _why_waiting(flags: dict[str, Any], group: str) -> str:
    from tidelog.cli.tools.group_waiting import why_waiting  # Only a tool that waits asks.

    return why_waiting(_own(flags), flags["bootstrap_server"], group)


class Reading:
    """One run of the tool: from the first record to the last one wanted, or a signal."""

    def __init__(
        self,
        config: dict[str, Any],
        printer: MessageFormatter,
        flags: dict[str, Any],
        why_waiting: Callable[[], str],
        wanted: Wanted | None = None,
    ) -> None:
        """``why_waiting``: why the group has no partitions, as far as a broker can say. ``wanted``: which records are printed.
        CommandFailed when librdkafka refuses a setting."""
        from confluent_kafka import Consumer as RealConsumer
        from confluent_kafka import KafkaException

        self._printer = printer
        self._flags = flags
        self._wanted = wanted
        self._stopping = False
        self._count = 0
        self._warned: set[str] = set()
        self._why_waiting = why_waiting
        self._explain_s = time.monotonic() + EXPLAIN_S
        self._missing = ""
        """Why no records can come: a topic or partition that does not exist, as far as known."""
        try:
            self._consumer: Consumer = RealConsumer({"log_level": LOG_LEVEL, **config, "error_cb": self._complain})
        except KafkaException as error:
            raise CommandFailed(f"The consumer cannot be made: {error.args[0].str()}") from error

    def run(self) -> tuple[int, bool]:
        """Prints until the end. Returns the number of records printed, and whether it ended with an error."""
        for number in ending_signals():
            signal.signal(number, self._stop)
        self._begin()
        self._event("startup_complete")
        wrong = False
        try:
            self._loop()
        except BrokenPipeError:
            # The reader of our output closed it. Python flushes the buffered output at exit; it needs a target.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except CommandFailed as error:
            print(f"ERROR Error processing message, terminating consumer process: {error}", file=sys.stderr)
            wrong = True
        finally:
            self._consumer.close()
        self._event("shutdown_complete")
        return self._count, wrong

    def _begin(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

        topic, partition, offset = self._flags["topic"], self._flags["partition"], self._flags["offset"]
        if partition is not None:
            named: dict[str | None, int] = {None: OFFSET_BEGINNING if self._flags["from_beginning"] else OFFSET_END}
            named |= {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
            start = named[offset] if offset in named else int(offset)
            self._consumer.assign([TopicPartition(topic, partition, start)])
        elif topic is not None:
            self._consumer.subscribe([topic])
        else:
            pattern = "|".join(part.strip() for part in self._flags["include"].strip("\"'").split(","))
            self._consumer.subscribe([f"^({pattern})$"])

    def _loop(self) -> None:
        """Polls batches of records while more are wanted."""
        most, timeout_ms = self._flags["max_messages"], self._flags["timeout_ms"]
        limit = most if most is not None and most >= 0 else sys.maxsize
        silent_since = time.monotonic()
        while not self._stopping and self._count < limit:
            messages = self._consumer.consume(min(BATCH, limit - self._count), POLL_S)
            now = time.monotonic()
            good = [message for message in messages if self._is_record(message)]
            if good:
                silent_since, self._missing = now, ""
                self._print(good)
                continue
            self._explain(now)
            if timeout_ms is not None and timeout_ms >= 0 and (now - silent_since) * 1000 >= timeout_ms:
                print("ERROR No record came within --timeout-ms, ending: TimeoutException", file=sys.stderr)
                if self._missing or self._no_such_partition():
                    raise CommandFailed(self._missing or "The partition does not exist.")
                return

    def _explain(self, now_s: float) -> None:
        """Says why the group has no partitions, each reason once."""
        if self._count or self._flags["partition"] is not None or now_s < self._explain_s or self._consumer.assignment():
            return
        self._warn(self._why_waiting())
        self._explain_s = time.monotonic() + EXPLAIN_S

    def _warn(self, text: str) -> None:
        if text and text not in self._warned:
            self._warned.add(text)
            print(f"WARN [Consumer clientId={NAME}] {text}", file=sys.stderr)

    def _no_such_partition(self) -> bool:
        """Whether ``--partition`` names one that the topic does not have; librdkafka would wait for it silently."""
        from confluent_kafka import KafkaException

        if self._flags["partition"] is None:
            return False
        try:
            topic = self._consumer.list_topics(timeout=METADATA_S).topics.get(self._flags["topic"])
        except KafkaException:
            return False  # the tool has already reported that no broker answers
        return topic is None or self._flags["partition"] not in topic.partitions

    def _print(self, messages: list[Message]) -> None:
        out = sys.stdout.buffer
        last: dict[tuple[str, int], Message] = {}
        for message in messages:
            record = consumed(message)
            if self._wanted is not None and not self._wanted(record):
                last[record.topic, record.partition] = message
                continue
            try:
                out.write(self._printer(record))
            except ValueError as error:
                if not self._flags["skip_message_on_error"]:
                    out.flush()
                    raise CommandFailed(f"{error}; --skip-message-on-error passes over such records") from error
                print(f"ERROR Error processing message, skipping this message: {error}", file=sys.stderr)
            self._count += 1
            last[record.topic, record.partition] = message
        out.flush()
        for message in last.values():
            self._consumer.store_offsets(message=message)

    def _is_record(self, message: Message) -> bool:
        """Whether it is a record and not an error: a transient error is reported, another one ends the tool."""
        error = message.error()
        if error is None:
            return True
        if error.fatal() or error.name() in ENDING:
            raise CommandFailed(error.str())
        if error.name() in MISSING:
            self._missing = error.str()
        print(f"WARN [Consumer clientId={NAME}] {error.name()}: {error.str()}", file=sys.stderr)
        return False

    def _complain(self, error: KafkaError) -> None:
        """Reports each error once: librdkafka repeats them at every attempt, and reports only here that no broker answers."""
        text = f"{error.name()}: {error.str()}"
        if (which := text.partition(" (after ")[0]) not in self._warned:
            self._warned.add(which)
            print(f"WARN [Consumer clientId={NAME}] {text}", file=sys.stderr)

    def _event(self, name: str) -> None:
        if self._flags["enable_systest_events"]:
            import json

            print(json.dumps({"name": name, "timestamp": int(time.time() * 1000)}), flush=True)  # noqa: TID251

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True


ENDING = frozenset(
    {
        "_AUTHENTICATION",
        "_AUTO_OFFSET_RESET",
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_GROUP_ID",
        "TOPIC_EXCEPTION",
    }
)
"""Errors of librdkafka after which no records will come."""


MISSING = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID"})
"""A missing topic may still be created: the tool waits for it until its timeout."""


def main() -> None:
    """``kafka-console-consumer``."""
    entry.run(command, "kafka-console-consumer")


if __name__ == "__main__":
    main()
