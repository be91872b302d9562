"""``tidelog share-groups dead-letters``: what share groups gave up (KIP-1191), looked at, counted, and sent back.

It works on any cluster with dead-letter topics. ``replay`` runs on librdkafka's producer, everything else on our own client.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidelog.cli import columns, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.model.printable import printable

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession

F = TypeVar("F", bound=Callable[..., Any])
TOPIC_NAME = "errors.deadletterqueue.topic.name"
"""The setting of a group that names its dead-letter topic."""
DEFAULT_MAX_REPLAYS = 3

topic_argument = click.argument("dead_letter_topic", metavar="[DEAD_LETTER_TOPIC]", required=False)


def _with(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


connection = _with(bootstrap_option, command_config_option, columns.output_option)
filters = _with(
    click.option("--group", multiple=True, help="Given up by this share group; several may be given."),
    click.option("--topic", multiple=True, metavar="TOPIC[:0,1]", help="From this topic, or some of its partitions; repeatable."),
    click.option("--reason", multiple=True, metavar="TEXT", help="With this text in the reason, in any case; repeatable."),
    click.option("--header", multiple=True, metavar="NAME[=VALUE]", help="With this header; of several, all must be there."),
    click.option("--key", metavar="TEXT", help="With this key, if keys are copied."),
    click.option("--since", metavar="TIME", help="Written then or later: YYYY-MM-DDThh:mm:ss (UTC without a zone), or PT1H ago."),
    click.option("--until", metavar="TIME", help="Written before that."),
)


@click.group("dead-letters", context_settings={"help_option_names": ["-h", "--help"]})
def dead_letters() -> None:
    """Look at what share groups gave up, and send it back.

    DEAD_LETTER_TOPIC may be left out when --group names a group that has one now.
    """


@dead_letters.command("list")
@topic_argument
@connection
@filters
@click.option(
    "--limit", type=click.IntRange(min=0), default=100, show_default=True, help="The newest so many at most; 0 for all."
)
def list_command(dead_letter_topic: str | None, **flags: Any) -> None:
    """List dead letters, the oldest first."""
    with _session(dead_letter_topic, flags) as (session, topic):
        from tidelog.cli.dead_letters import looking
        from tidelog.cli.dead_letters.log_reading import LogReader

        rows = looking.listed(LogReader(session), topic, _choice(flags), flags["limit"])
        if flags["output"] == "json":
            print(columns.as_json(looking.as_output(rows)))
        else:
            print(columns.table(looking.LIST_COLUMNS, rows))


@dead_letters.command("count")
@topic_argument
@connection
@filters
def count_command(dead_letter_topic: str | None, **flags: Any) -> None:
    """Count dead letters by group, topic and reason."""
    with _session(dead_letter_topic, flags) as (session, topic):
        from tidelog.cli.dead_letters import looking
        from tidelog.cli.dead_letters.log_reading import LogReader

        rows = looking.counted(LogReader(session), topic, _choice(flags))
        print(columns.as_json(rows) if flags["output"] == "json" else columns.table(looking.COUNT_COLUMNS, rows))


@dead_letters.command("show")
@click.argument("record", metavar="DEAD_LETTER_TOPIC:PARTITION:OFFSET")
@connection
def show_command(record: str, **flags: Any) -> None:
    """Show one dead letter, the record that it came from, and where that was replayed to."""
    topic, partition, offset = place(record)
    with _session(topic, flags) as (session, _):
        from tidelog.cli.dead_letters import looking
        from tidelog.cli.dead_letters.log_reading import LogReader

        found = looking.shown(LogReader(session), topic, partition, offset)
        if flags["output"] == "json":
            print(columns.as_json(found))
        else:
            for line in looking.shown_text(found):
                print(printable(line))


@dead_letters.command("replay")
@topic_argument
@connection
@filters
@click.option("--dry-run", is_flag=True, help="Only say what would be replayed, as without --execute.")
@click.option("--execute", is_flag=True, help="Do it.")
@click.option(
    "--max-replays",
    type=click.IntRange(min=1),
    default=DEFAULT_MAX_REPLAYS,
    show_default=True,
    help="How often a record that keeps failing may be replayed in all.",
)
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="At most so many records a second.")
def replay_command(dead_letter_topic: str | None, **flags: Any) -> None:
    """Write the records of dead letters back to their topics, each once, however often this runs or is killed."""
    if flags["dry_run"] and flags["execute"]:
        refusal.usage("--dry-run and --execute contradict each other: give one.")
    with _session(dead_letter_topic, flags) as (session, topic):
        from tidelog.cli.dead_letters import sending

        report = sending.replay(session, topic, _choice(flags), flags)
        if flags["output"] == "json":
            print(columns.as_json(report))
        else:
            print("\n".join(sending.report_text(report)))
    sys.exit(1 if report["refused"] else 0)


@contextmanager
def _session(topic: str | None, flags: dict[str, Any]) -> Iterator[tuple[AdminSession, str]]:
    """A session, and the dead-letter topic: the one that was named, or that of the group that was."""
    ctx = click.get_current_context()
    above = ctx.find_object(dict) or {}
    for name in ("bootstrap_server", "command_config"):
        flags[name] = flags[name] or above.get(name)
    refusal.required(flags["bootstrap_server"])
    if topic is None and len(flags["group"]) != 1:
        refusal.usage("Name the dead-letter topic, or one --group that has one.")
    from tidelog.cli.admin_session import AdminSession

    with refusal.one_line("Error: "), AdminSession(flags["bootstrap_server"], flags["command_config"]) as session:
        yield session, _topic_of(session, flags["group"][0]) if topic is None else topic


def _topic_of(session: AdminSession, group: str) -> str:
    from tidelog.client.admin import configs
    from tidelog.client.admin.results import ResourceType

    found = session.run(configs.describe(ResourceType.GROUP, group, [TOPIC_NAME])).get(TOPIC_NAME)
    if found is None or not found.value:
        raise refusal.CommandFailed(f"Group {group} has no {TOPIC_NAME} now: name the dead-letter topic.")
    return found.value


def _choice(flags: dict[str, Any]) -> Any:
    from tidelog.cli.dead_letters.choice import choice_of

    return choice_of(flags, time.time_ns() // 1_000_000)


def place(text: str) -> tuple[str, int, int]:
    """``TOPIC:PARTITION:OFFSET``."""
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        refusal.usage(f"{text}: name a record as TOPIC:PARTITION:OFFSET, such as dlq.jobs:0:17")
    return topic, int(partition), int(offset)
