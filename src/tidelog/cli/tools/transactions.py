"""``tidelog transactions``, also installed as ``kafka-transactions``: shows open and hanging transactions, and aborts them.

Commands, flags and columns are those of Kafka's tool. Its spelling ``forceTerminateTransaction`` is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed
from tidelog.model.printable import printable

NAME = "transactions"
MAX_TIMEOUT_MINUTES = 15
MS_IN_MINUTE = 60_000
FILE = click.Path(exists=True, dir_okay=False)
OUTPUT = click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="json: for programs."
)
Titles = list[tuple[str, str]]


class _Words(click.Group):
    """Lists commands in source order, and accepts Kafka's spelling."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in self.commands if name != "forceTerminateTransaction"]


@click.group(NAME, cls=_Words, context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.pass_context
def command(ctx: click.Context, bootstrap_server: str | None, command_config: str | None) -> None:
    """Look at transactions, find those that hang, end them."""
    ctx.obj = (bootstrap_server, command_config)


def _with_session(ctx: click.Context, act: Callable[[Any], None]) -> None:
    """Runs the command; an error becomes one line."""
    bootstrap, command_config = ctx.obj
    refusal.required(bootstrap)
    from tidelog.cli.admin_session import AdminSession

    with refusal.one_line("Error: "), AdminSession(bootstrap, command_config) as session:
        act(session)


def _print(titles: Titles, rows: list[columns.Row], output: str) -> None:
    """Kafka's table: columns as wide as their values, each followed by a tab; a missing value is None."""
    if output == "json":
        print(columns.as_json(rows))
        return
    lines = [[title for title, _ in titles], *([_shown(row[key]) for _, key in titles] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(titles))]
    for line in lines:
        print("".join(f"{text.ljust(width)}\t" for text, width in zip(line, widths, strict=True)))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(f"{topic}-{index}" for topic, index in value)
    return printable(str(value))


@command.command("list")
@click.option("--duration-filter", type=int, default=-1, metavar="MS", help="Only those that have run for longer.")
@click.option("--transactional-id-pattern", metavar="REGEX", help="Only those whose id matches.")
@OUTPUT
@click.pass_context
def list_(ctx: click.Context, duration_filter: int, transactional_id_pattern: str | None, output: str) -> None:
    """List the transactional ids that coordinators know."""
    from tidelog.cli.tools import transaction_state

    def act(session: Any) -> None:
        found = transaction_state.list_transactions(session, duration_ms=duration_filter, pattern=transactional_id_pattern)
        rows: list[columns.Row] = [
            {
                "transactional_id": each.transactional_id,
                "coordinator": each.coordinator,
                "producer_id": each.producer_id,
                "state": each.state,
            }
            for each in found
        ]
        titles = [
            ("TransactionalId", "transactional_id"),
            ("Coordinator", "coordinator"),
            ("ProducerId", "producer_id"),
            ("TransactionState", "state"),
        ]
        _print(titles, rows, output)

    _with_session(ctx, act)


@command.command()
@click.option("--transactional-id", required=True, help="Which one.")
@OUTPUT
@click.pass_context
def describe(ctx: click.Context, transactional_id: str, output: str) -> None:
    """Show the state of a transactional id."""
    from tidelog.cli.tools import transaction_state

    def act(session: Any) -> None:
        found = transaction_state.describe(session, transactional_id)
        started = found.started_ms
        row: columns.Row = {
            "coordinator": found.coordinator,
            "transactional_id": found.transactional_id,
            "producer_id": found.producer_id,
            "producer_epoch": found.producer_epoch,
            "state": found.state,
            "timeout_ms": found.timeout_ms,
            "start_time_ms": started,
            "duration_ms": None if started is None else _now_ms() - started,
            "partitions": [list(partition) for partition in found.partitions],
        }
        titles = [
            ("CoordinatorId", "coordinator"),
            ("TransactionalId", "transactional_id"),
            ("ProducerId", "producer_id"),
            ("ProducerEpoch", "producer_epoch"),
            ("TransactionState", "state"),
            ("TransactionTimeoutMs", "timeout_ms"),
            ("CurrentTransactionStartTimeMs", "start_time_ms"),
            ("TransactionDurationMs", "duration_ms"),
            ("TopicPartitions", "partitions"),
        ]
        _print(titles, [row], output)

    _with_session(ctx, act)


@command.command("describe-producers")
@click.option("--broker-id", type=int, help="Ask this broker's replica instead of the leader.")
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", required=True, type=int, help="The partition.")
@OUTPUT
@click.pass_context
def describe_producers(ctx: click.Context, broker_id: int | None, topic: str, partition: int, output: str) -> None:
    """Show the producers that a partition remembers."""
    from tidelog.cli.tools import transaction_state

    def act(session: Any) -> None:
        rows: list[columns.Row] = [
            {
                "producer_id": each.producer_id,
                "producer_epoch": each.epoch,
                "coordinator_epoch": each.coordinator_epoch,
                "last_sequence": each.last_sequence,
                "last_timestamp_ms": each.last_timestamp_ms,
                "start_offset": each.start_offset,
            }
            for each in transaction_state.producers(session, [(topic, partition)], broker_id)
        ]
        titles = [
            ("ProducerId", "producer_id"),
            ("ProducerEpoch", "producer_epoch"),
            ("LatestCoordinatorEpoch", "coordinator_epoch"),
            ("LastSequence", "last_sequence"),
            ("LastTimestamp", "last_timestamp_ms"),
            ("CurrentTransactionStartOffset", "start_offset"),
        ]
        _print(titles, rows, output)

    _with_session(ctx, act)


@command.command()
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", required=True, type=int, help="The partition.")
@click.option("--start-offset", type=int, help="Where the transaction begins in the partition.")
@click.option("--producer-id", type=int, help="Instead, for brokers before 3.0: the producer,")
@click.option("--producer-epoch", type=int, help="... its epoch,")
@click.option("--coordinator-epoch", type=int, help="... and that of its coordinator.")
@click.pass_context
def abort(
    ctx: click.Context,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> None:
    """Abort a hanging transaction in one partition."""
    if start_offset is None and producer_id is None:
        refusal.usage("The transaction to abort must be identified either with --start-offset or with --producer-id")
    if start_offset is None and (producer_epoch is None or coordinator_epoch is None):
        refusal.usage("--producer-id needs --producer-epoch and --coordinator-epoch")
    from tidelog.cli.tools import transaction_state

    def act(session: Any) -> None:
        where = (topic, partition)
        if start_offset is not None:
            found = [each for each in transaction_state.producers(session, [where]) if each.start_offset == start_offset]
            if not found:
                raise CommandFailed(
                    f"No open transaction of {topic}-{partition} starts at offset {start_offset}; describe-producers lists the "
                    "open ones"
                )
            chosen = found[0]
        else:
            assert producer_id is not None
            assert producer_epoch is not None
            assert coordinator_epoch is not None
            chosen = transaction_state.Producer(where, producer_id, producer_epoch, coordinator_epoch, -1, -1, None)
        transaction_state.abort(session, chosen)

    _with_session(ctx, act)


@command.command("find-hanging")
@click.option("--broker-id", type=int, help="Look at the partitions of this broker.")
@click.option(
    "--max-transaction-timeout",
    type=int,
    default=MAX_TIMEOUT_MINUTES,
    show_default=True,
    metavar="MINUTES",
    help="Only what has had no record for longer.",
)
@click.option("--topic", help="Look at this topic.")
@click.option("--partition", type=int, help="Look at this partition of it.")
@OUTPUT
@click.pass_context
def find_hanging(
    ctx: click.Context, broker_id: int | None, max_transaction_timeout: int, topic: str | None, partition: int | None, output: str
) -> None:
    """Find open transactions that no coordinator will end."""
    if partition is not None and topic is None:
        refusal.usage("--partition is a number within a topic: add --topic")
    if broker_id is None and topic is None:
        refusal.usage("find-hanging searches one topic or one broker: add --topic or --broker-id")
    from tidelog.cli.tools import transaction_state

    def act(session: Any) -> None:
        now_ms = _now_ms()
        oldest_ms = now_ms - max_transaction_timeout * MS_IN_MINUTE
        partitions = _scope(session, broker_id, topic, partition)
        open_ones = [
            each
            for each in transaction_state.producers(session, partitions, broker_id)
            if each.start_offset is not None and each.last_timestamp_ms < oldest_ms
        ]
        rows: list[columns.Row] = [
            {
                "topic": each.partition[0],
                "partition": each.partition[1],
                "producer_id": each.producer_id,
                "producer_epoch": each.epoch,
                "coordinator_epoch": each.coordinator_epoch,
                "start_offset": each.start_offset,
                "last_timestamp_ms": each.last_timestamp_ms,
                "duration_minutes": (now_ms - each.last_timestamp_ms) // MS_IN_MINUTE,
            }
            for each in transaction_state.hanging(session, open_ones)
        ]
        titles = [
            ("Topic", "topic"),
            ("Partition", "partition"),
            ("ProducerId", "producer_id"),
            ("ProducerEpoch", "producer_epoch"),
            ("CoordinatorEpoch", "coordinator_epoch"),
            ("StartOffset", "start_offset"),
            ("LastTimestamp", "last_timestamp_ms"),
            ("Duration(min)", "duration_minutes"),
        ]
        _print(titles, rows, output)

    _with_session(ctx, act)


def _scope(session: Any, broker_id: int | None, topic: str | None, partition: int | None) -> list[tuple[str, int]]:
    """The partitions to search."""
    if topic is not None and partition is not None:
        return [(topic, partition)]
    found = []
    for each in session.metadata(None if topic is None else [topic]):
        if topic is not None:
            refusal.check(each.error_code)
        found += [
            (each.name, part.partition_index) for part in each.partitions if broker_id is None or broker_id in part.replica_nodes
        ]
    return found


@command.command("force-terminate")
@click.option("--transactional-id", "--transactionalId", required=True, help="Which one.")
@click.pass_context
def force_terminate(ctx: click.Context, transactional_id: str) -> None:
    """Fence a producer and abort what it has open."""
    from tidelog.cli.tools import transaction_state

    _with_session(ctx, lambda session: transaction_state.force_terminate(session, transactional_id))


command.add_command(force_terminate, "forceTerminateTransaction")


def _now_ms() -> int:
    import time

    return time.time_ns() // 1_000_000


def main() -> None:
    """``kafka-transactions``."""
    entry.run(command, "kafka-transactions")


if __name__ == "__main__":
    main()
