"""``tidelog console-share-consumer``, also installed as ``kafka-console-share-consumer``: prints records for a share group.

Flags, formatters and their properties are those of Kafka's tool. librdkafka is the client. A record is acknowledged when it has
been printed; one that was delivered and not printed goes back to the group when the tool ends.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import client_settings, entry, refusal
from tidelog.cli.connection_options import bootstrap_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.consumed_record import consumed
from tidelog.cli.tools.message_formatters import DEFAULT_FORMATTER, MessageFormatter, chosen_formatter
from tidelog.server.signals import ending_signals

if TYPE_CHECKING:
    from confluent_kafka import Message, ShareConsumer

NAME = "console-share-consumer"
BATCH = 500
"""Records per poll of the client."""
POLL_S = 0.1
LOG_LEVEL = "2"
"""Critical messages only: errors are also delivered with the records."""
FILE = click.Path(exists=True, dir_okay=False)
PRINTED = "print.key=true, print.delivery=true and others: see the guide."
ENDING = frozenset(
    {"_AUTHENTICATION", "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "INVALID_GROUP_ID", "TOPIC_EXCEPTION"}
)
"""Errors of librdkafka after which no records will come."""


@click.command(NAME, context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@click.option("--topic", required=True, help="The topic to consume.")
@click.option("--group", help=f"The share group. [{NAME}]")
@click.option("--max-messages", type=int, help="End after so many records.")
@click.option("--timeout-ms", type=int, help="End when no record came for so long.")
@click.option("--reject", is_flag=True, help="Reject the records: the group does not deliver them again.")
@click.option("--release", is_flag=True, help="Release the records: the group delivers them again.")
@click.option("--reject-message-on-error", is_flag=True, help="Reject a record that cannot be printed, instead of ending.")
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
@click.option("--consumer-config", type=FILE, help="The old name of --command-config.")
@click.option("--enable-systest-events", is_flag=True, help="Also print when the consumer ends.")
def command(**flags: Any) -> None:
    """Print the records of a topic as a member of a share group."""
    _check(flags)
    with refusal.one_line(""):
        own = client_settings.gather(
            [flags["consumer_config"], flags["command_config"]], [*flags["consumer_property"], *flags["command_property"]]
        )
        reading = Reading(settings(flags, own), chosen_formatter(flags), flags)
        client_settings.check_reachable(own, flags["bootstrap_server"])
        count, wrong = reading.run()
        print(f"Processed a total of {count} messages", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def _check(flags: dict[str, Any]) -> None:
    """Checks flags that exclude each other."""
    refusal.required(flags["bootstrap_server"])
    if flags["reject"] and flags["release"]:
        refusal.usage("--reject and --release contradict each other: give one.")
    pairs = (
        ("properties", "formatter_property", "--property", "--formatter-property"),
        ("consumer_property", "command_property", "--consumer-property", "--command-property"),
        ("consumer_config", "command_config", "--consumer-config", "--command-config"),
    )
    refusal.renamed(flags, pairs)


def settings(flags: dict[str, Any], own: dict[str, str]) -> dict[str, Any]:
    """librdkafka's settings. CommandFailed when the group is given twice with different values."""
    groups = {group for group in (flags["group"], own.get("group.id")) if group is not None} or {NAME}
    if len(groups) > 1:
        raise CommandFailed(f"The group is said twice: {' and '.join(sorted(groups))}. Say it once, with --group or group.id.")
    java = {"client.id": NAME} | own | {"bootstrap.servers": flags["bootstrap_server"], "group.id": groups.pop()}
    most = flags["max_messages"]
    batch = BATCH if most is None or most < 0 else max(1, min(BATCH, most))
    wanted = int(java.pop("max.poll.records", batch))
    return client_settings.to_librdkafka(java) | {"share.acknowledgement.mode": "explicit", "max.poll.records": str(wanted)}


class Reading:
    """One run of the tool: from the first record to the last one wanted, or a signal."""

    def __init__(self, config: dict[str, Any], printer: MessageFormatter, flags: dict[str, Any]) -> None:
        """CommandFailed when librdkafka refuses a setting."""
        from confluent_kafka import AcknowledgeType, KafkaException
        from confluent_kafka import ShareConsumer as RealConsumer

        self._printer = printer
        self._flags = flags
        self._stopping = False
        self._count = 0
        self._warned: set[str] = set()
        self._rejected = AcknowledgeType.REJECT
        self._printed = AcknowledgeType.ACCEPT
        if flags["reject"] or flags["release"]:
            self._printed = AcknowledgeType.REJECT if flags["reject"] else AcknowledgeType.RELEASE
        try:
            self._consumer: ShareConsumer = RealConsumer({"log_level": LOG_LEVEL, **config, "error_cb": self._complain})
        except (KafkaException, ValueError) as error:
            raise CommandFailed(f"The consumer cannot be made: {error}") from error

    def run(self) -> tuple[int, bool]:
        """Prints until the end. Returns the number of records taken, and whether it ended with an error."""
        for number in ending_signals():
            signal.signal(number, self._stop)
        self._consumer.subscribe([self._flags["topic"]])
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
        if self._flags["enable_systest_events"]:
            print("shutdown_complete", flush=True)
        return self._count, wrong

    def _loop(self) -> None:
        """Polls batches of records while more are wanted."""
        most, timeout_ms = self._flags["max_messages"], self._flags["timeout_ms"]
        limit = most if most is not None and most >= 0 else sys.maxsize
        silent_since = time.monotonic()
        while not self._stopping and self._count < limit:
            good = [message for message in self._consumer.poll(POLL_S) if self._is_record(message)]
            now = time.monotonic()
            if good:
                silent_since = now
                self._print(good[: limit - self._count])
            elif timeout_ms is not None and timeout_ms >= 0 and (now - silent_since) * 1000 >= timeout_ms:
                print("ERROR No record came within --timeout-ms, ending: TimeoutException", file=sys.stderr)
                return

    def _print(self, messages: list[Message]) -> None:
        """Prints and acknowledges; the client sends the acknowledgements with its next poll, or when it is closed."""
        out = sys.stdout.buffer
        for message in messages:
            outcome = self._printed
            try:
                record = consumed(message)._replace(delivery_count=message.delivery_count())
                out.write(self._printer(record))
            except ValueError as error:
                if not self._flags["reject_message_on_error"]:
                    out.flush()
                    raise CommandFailed(f"{error}; --reject-message-on-error rejects such records") from error
                print(f"ERROR Error processing message, rejecting this message: {error}", file=sys.stderr)
                outcome = self._rejected
            self._consumer.acknowledge(message, outcome)
            self._count += 1
        out.flush()

    def _is_record(self, message: Message) -> bool:
        """Whether it is a record and not an error: a transient error is reported, another one ends the tool."""
        error = message.error()
        if error is None:
            return True
        if error.fatal() or error.name() in ENDING:
            raise CommandFailed(error.str())
        self._complain(error)
        return False

    def _complain(self, error: Any) -> None:
        """Reports each error once: librdkafka repeats them at every attempt."""
        text = f"{error.name()}: {error.str()}"
        if (which := text.partition(" (after ")[0]) not in self._warned:
            self._warned.add(which)
            print(f"WARN [ShareConsumer clientId={NAME}] {text}", file=sys.stderr)

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True


def main() -> None:
    """``kafka-console-share-consumer``."""
    entry.run(command, "kafka-console-share-consumer")


if __name__ == "__main__":
    main()
