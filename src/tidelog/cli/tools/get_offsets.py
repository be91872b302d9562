"""``tidelog get-offsets``, also installed as ``kafka-get-offsets``: prints ``topic:partition:offset`` lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import topic_choice
from tidelog.model.ids import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)

TIMES = {
    "latest": LATEST_TIMESTAMP,
    "earliest": EARLIEST_TIMESTAMP,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL_TIMESTAMP,
    "latest-tiered": LATEST_TIERED_TIMESTAMP,
    "earliest-pending-upload": EARLIEST_PENDING_UPLOAD_TIMESTAMP,
}
Filter = Callable[[str, int], bool]
_RULE = re.compile(r"([^:,]*)(?::(?:(\d*)|(\d*)-(\d*)))?")


@click.command("get-offsets", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.option("--topic", metavar="REGEX", help="The topics: a name, or a regular expression. [all]")
@click.option("--partitions", metavar="0,1", help="The partitions of those topics. [all]")
@click.option(
    "--topic-partitions", metavar="A:1,B:0-3,C", help="Topics and partitions at once; a range ends before its second number."
)
@click.option("--time", "time_", default="latest", show_default=True, help=f"A timestamp in ms, or {', '.join(TIMES)}.")
@click.option("--exclude-internal-topics", is_flag=True, help="Leave Kafka's internal topics out.")
@columns.output_option
def command(
    bootstrap_server: str | None,
    command_config: str | None,
    topic: str | None,
    partitions: str | None,
    topic_partitions: str | None,
    time_: str,
    exclude_internal_topics: bool,
    output: str,
) -> None:
    """Print the offset of each partition at a time."""
    from tidelog.cli.admin_session import AdminSession

    bootstrap = refusal.required(bootstrap_server)
    with refusal.one_line("Error occurred: "):
        timestamp = _timestamp(time_)
        _filter(topic, partitions, topic_partitions, ())  # errors in the flags are reported before any request
        with AdminSession(bootstrap, command_config) as session:
            topics = [each for each in session.metadata(None) if not (exclude_internal_topics and each.is_internal)]
            wanted = _filter(topic, partitions, topic_partitions, [each.name or "" for each in topics])
            offsets = _offsets(session, topics, wanted, timestamp)
    if output == "json":
        print(columns.as_json([{"topic": name, "partition": index, "offset": offset} for name, index, offset in offsets]))
    else:
        print("".join(f"{name}:{index}:{offset}\n" for name, index, offset in offsets), end="")


def _offsets(session: Any, topics: Sequence[Any], wanted: Filter, timestamp: int) -> list[tuple[str, int, int]]:
    """Topic, partition and offset where there is one; the reasons for the others go to stderr."""
    import sys

    from tidelog.model.errors import ErrorCode
    from tidelog.model.ids import NO_OFFSET

    chosen = sorted(
        (topic.name, partition.partition_index)
        for topic in topics
        for partition in topic.partitions
        if wanted(topic.name, partition.partition_index)
    )
    if not chosen:
        raise CommandFailed("No partition fits --topic, --partitions or --topic-partitions")
    found = session.list_offsets(dict.fromkeys(chosen, timestamp))
    offsets = []
    for topic, index in chosen:
        answer = found.get((topic, index))
        if answer is None:
            print(f"{topic}-{index} is left out: it has no leader", file=sys.stderr)
        elif answer.error_code != ErrorCode.NONE:
            reason = refusal.error_text(answer.error_code)
            print(f"{topic}-{index} is left out: {reason}", file=sys.stderr)
        elif answer.offset != NO_OFFSET:
            offsets.append((topic, index, answer.offset))
    return offsets


def _timestamp(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        known = " / ".join(f"{number} or {name}" for name, number in TIMES.items())
        raise CommandFailed(f"Malformed time argument {text}. Please use {known}, or a specified long format timestamp") from None


def _filter(topic: str | None, partitions: str | None, topic_partitions: str | None, existing: Sequence[str]) -> Filter:
    """The partitions of the ``existing`` topics that the flags select."""
    if topic_partitions is not None:
        if topic is not None or partitions is not None:
            raise CommandFailed("--topic-partitions replaces --topic and --partitions: leave those out")
        rules = [rule(text.strip(), existing) for text in topic_partitions.split(",")]
        return lambda name, index: any(each(name, index) for each in rules)
    meant = _meant(topic or ".*", existing)
    numbers = None
    if partitions is not None:
        if not all(text.strip().isdecimal() for text in partitions.split(",")):
            raise CommandFailed(f"--partitions takes numbers with commas between them, such as 0,2,5: {partitions} is none")
        numbers = {int(text) for text in partitions.split(",")}
    return lambda name, index: meant(name) and (numbers is None or index in numbers)


def rule(text: str, existing: Sequence[str] = ()) -> Filter:
    """One of ``TOPIC``, ``TOPIC:1``, ``TOPIC:0-3``, ``TOPIC:2-``, ``TOPIC:-3``; the end of a range is exclusive."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise CommandFailed(f"Invalid rule specification: {text}. Write TOPIC, TOPIC:1, TOPIC:0-3, TOPIC:2- or TOPIC:-3")
    name, single, low, high = match.groups()
    meant = _meant(name or ".*", existing)
    if single:
        first, last = int(single), int(single) + 1
    else:
        first, last = int(low or 0), int(high) if high else 1 << 31
    return lambda topic, index: meant(topic) and first <= index < last


def _meant(text: str, existing: Sequence[str]) -> Callable[[str], bool]:
    try:
        return topic_choice.meant(text, existing)
    except re.error as error:
        raise CommandFailed(f"The pattern {text} cannot be compiled: {error}") from error


def main() -> None:
    """``kafka-get-offsets``."""
    entry.run(command, "kafka-get-offsets")


if __name__ == "__main__":
    main()
