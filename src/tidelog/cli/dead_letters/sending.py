"""``dead-letters replay`` in a session: the journal's topic, the producer, and the report."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tidelog.cli import client_settings, progress
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.columns import Column, Row, table
from tidelog.cli.dead_letters.log_reading import LogReader, Originals
from tidelog.cli.dead_letters.looking import entries, letters
from tidelog.cli.refusal import CommandFailed
from tidelog.client.admin import configs
from tidelog.client.admin import topics as topic_calls
from tidelog.client.admin.results import ResourceType
from tidelog.dead_letters.choice import Choice
from tidelog.dead_letters.journal import CONFIGS, Journal, journal_topic, transactional_id
from tidelog.dead_letters.letter import Letter
from tidelog.dead_letters.planning import Outcome, Plan, Target
from tidelog.dead_letters.replaying import Pace, Replaying
from tidelog.dead_letters.transactions import ReplayFailed, Transactions, Writer, producer_settings
from tidelog.model.ids import TopicPartition
from tidelog.model.printable import printable
from tidelog.records.record import Record

READY_S: Final = 30.0
PAUSE_S: Final = 0.1
ISOLATION: Final = "share.isolation.level"
COLUMNS: Final = [
    Column("GROUP", "group", 15),
    Column("TOPIC", "topic", 15),
    Column("PARTITION", "partition", 10),
    Column("RECORDS", "records", 0, pad=False),
]


def replay(session: AdminSession, topic: str, choice: Choice, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Replays the chosen dead letters of a topic, or only says what that would do; the report, as ``--output json`` prints it."""
    reader = LogReader(session)
    if reader.topic(topic) is None:
        raise CommandFailed(f"There is no topic {topic}, or this client may not describe it.")
    originals = Originals(reader)
    targets: dict[str, Target | None] = {}

    def target(name: str) -> Target | None:
        if name not in targets:
            found = reader.topic(name)
            targets[name] = None if found is None else Target(*found)
        return targets[name]

    def find(letter: Letter) -> Record | None:
        source = letter.source
        there = target(source.topic)
        if there is None or source.partition >= there.partitions:
            return None
        return originals.find(TopicPartition(source.topic, source.partition), source.offset)

    with _one_failure(), _writer(session, reader, topic, flags) as writer:
        # The run before has ended by now, and its transaction is in the journal, or aborted.
        journal = Journal(entries(reader, topic))
        plan = Plan(topic, target, journal, flags["max_replays"])
        run = Replaying(plan, find, journal, writer, Pace(flags["rate"]))
        total = sum(end - first for first, end in reader.ranges(topic, choice.since_ms).values())
        with progress.bar("Replaying" if writer else "Looking", total) as advanced:
            run.run(_counted(letters(reader, topic, choice), advanced), _line(writer))
    return {**_report(topic, run, flags), "read_uncommitted": _uncommitted(session, {group for group, _, _ in run.replayed})}


@contextmanager
def _one_failure() -> Iterator[None]:
    """A replay that cannot go on is a command that fails."""
    try:
        yield
    except ReplayFailed as error:
        raise CommandFailed(str(error)) from error


def _uncommitted(session: AdminSession, groups: Iterable[str]) -> list[str]:
    """The groups that also get records of transactions that are aborted: what a killed run had written is delivered to them."""
    found = []
    for group in sorted(groups):
        try:
            settings = session.run(configs.describe(ResourceType.GROUP, group, [ISOLATION]))
        except CommandFailed:
            continue  # this client may not know
        if ISOLATION in settings and settings[ISOLATION].value != "read_committed":
            found.append(group)
    return found


def _counted(found: Iterator[Letter], advanced: Any) -> Iterator[Letter]:
    """Moves the bar by the letters that were looked at."""
    for number, letter in enumerate(found, 1):
        yield letter
        advanced(number)


def _line(writer: Writer | None) -> Any:
    """Where stderr is no terminal, and has no bar: a line every ten seconds."""
    if writer is None or sys.stderr.isatty():
        return lambda done: None
    last = [time.monotonic()]

    def report(done: int) -> None:
        if time.monotonic() - last[0] >= 10:
            last[0] = time.monotonic()
            print(f"{done} records replayed", file=sys.stderr, flush=True)

    return report


@contextmanager
def _writer(session: AdminSession, reader: LogReader, topic: str, flags: Mapping[str, Any]) -> Iterator[Writer | None]:
    if not flags["execute"]:
        yield None
        return
    from confluent_kafka import KafkaException, Producer

    _make_journal(session, reader, topic)
    own = client_settings.gather([flags["command_config"]], ())
    java = producer_settings(own, flags["bootstrap_server"], transactional_id(topic))
    try:
        producer = Producer({"log_level": "2", **client_settings.to_librdkafka(java)})
    except KafkaException as error:
        raise CommandFailed(f"The settings of the producer cannot be used: {error.args[0].str()}") from error
    writer = Transactions(producer, journal_topic(topic), _now_ms)
    try:
        yield writer
    finally:
        writer.close()


def _make_journal(session: AdminSession, reader: LogReader, topic: str) -> None:
    """Creates the journal's topic unless it is there, and waits for its leader."""
    name = journal_topic(topic)
    if reader.topic(name) is None:
        try:
            session.run(topic_calls.create(name, 1, configs=CONFIGS))
        except CommandFailed as error:
            if "TOPIC_ALREADY_EXISTS" not in str(error):
                raise CommandFailed(
                    f"The journal of replays cannot be created: {error} Create topic {name} with cleanup.policy=compact, and let "
                    "this client read and write it."
                ) from error
    deadline = time.monotonic() + READY_S
    while (TopicPartition(name, 0)) not in LogReader(session).partitions(name):
        if time.monotonic() > deadline:
            raise CommandFailed(f"Topic {name} has no leader after {READY_S:.0f} s.")
        time.sleep(PAUSE_S)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _report(topic: str, run: Replaying, flags: Mapping[str, Any]) -> dict[str, Any]:
    rows: list[Row] = [
        {"group": group, "topic": source, "partition": partition, "records": count}
        for (group, source, partition), count in sorted(run.replayed.items())
    ]
    return {
        "topic": topic,
        "executed": bool(flags["execute"]),
        "replayed": sum(run.replayed.values()),
        "records": rows,
        "left": {outcome.name.lower(): run.left[outcome] for outcome in Outcome if run.left[outcome]},
        "refused": [{"partition": letter.partition, "offset": letter.offset, "error": error} for letter, error in run.refusals],
    }


def report_text(report: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the report for a person."""
    if report["records"]:
        yield table(COLUMNS, report["records"])
        yield ""
    what = "replayed" if report["executed"] else "would be replayed; --execute does it"
    yield f"{report['replayed']} record{'' if report['replayed'] == 1 else 's'} {what}"
    for name, count in report["left"].items():
        yield f"{count} not: {Outcome[name.upper()].value}"
    for each in report["refused"]:
        yield f"  {report['topic']}:{each['partition']}:{each['offset']}: {each['error']}"
    if report["read_uncommitted"]:
        yield (
            f"These groups also get what a killed replay had written: {printable(', '.join(report['read_uncommitted']))}. "
            "Set their share.isolation.level to read_committed."
        )
