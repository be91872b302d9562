"""Collects what ``why-record`` needs: from any brokers with their clients' requests, from nodes by their pages of facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from tidelog.cli.admin_session import AdminSession
from tidelog.cli.dead_letters.log_reading import LogReader
from tidelog.cli.facts.endpoint import Access, Reader
from tidelog.cli.refusal import CannotConnect, CommandFailed
from tidelog.cli.why_record.facts import InLog, RecordFacts, Settings
from tidelog.client.admin import configs, share_groups
from tidelog.client.admin.group_results import ShareGroup
from tidelog.client.admin.results import ResourceType
from tidelog.client.calls import Call
from tidelog.client.settings import READ_COMMITTED
from tidelog.dead_letters.choice import Choice
from tidelog.dead_letters.letter import Letter, letter_of
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import LATEST_TIMESTAMP, TopicPartition

MOST_LETTERS: Final = 200_000
"""Dead letters that are read to find that of the record."""
LIMIT: Final = "share.delivery.count.limit"
LOCKS: Final = "share.partition.max.record.locks"
ISOLATION: Final = "share.isolation.level"
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"


def collect(
    session: AdminSession, group: str, at: TopicPartition, offset: int, endpoints: Sequence[str], access: Access
) -> RecordFacts:
    """All that can be known. CommandFailed when there is no such partition, or the group cannot be described."""
    reader = LogReader(session)
    facts = RecordFacts(group, at.topic, at.partition, offset, in_log(session, reader, at, offset))
    described = session.run(_described(group))
    if described is not None:
        found = session.run(share_groups.offsets(group)).get((at.topic, at.partition))
        facts = replace(
            facts,
            state=described.state,
            members=described.members,
            initialized=found is not None,
            start_offset=None if found is None else found.start_offset,
        )
    facts = _with_pages(_with_settings(session, facts), endpoints, access)
    return _with_letter(reader, facts)


def in_log(session: AdminSession, reader: LogReader, at: TopicPartition, offset: int) -> InLog:
    """The record in its partition. CommandFailed when there is no such partition."""
    ranges = reader.ranges(at.topic)
    if at not in ranges:
        raise CommandFailed(f"Topic {at.topic} has {len(ranges)} partitions, and no partition {at.partition}.")
    first, end = ranges[at]
    stable = session.list_offsets({(at.topic, at.partition): LATEST_TIMESTAMP}, isolation_level=READ_COMMITTED)
    log = InLog(first, end, max((answer.offset for answer in stable.values()), default=end))
    if not first <= offset < end:
        return log
    found = reader.look(at, offset)
    if found is None:
        return log
    timestamp = -1 if found.record is None else found.record.timestamp
    return replace(log, exists=found.record is not None, control=found.control, aborted=found.aborted, timestamp=timestamp)


def _described(group: str) -> Call[ShareGroup | None]:
    try:
        return (yield from share_groups.describe(group))
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None


def _with_settings(session: AdminSession, facts: RecordFacts) -> RecordFacts:
    """With the settings of the group, where it has some of its own; a broker's defaults may be others than Kafka's."""
    names = (LIMIT, LOCKS, ISOLATION, DEAD_LETTERS)
    try:
        found = session.run(configs.describe(ResourceType.GROUP, facts.group, names))
    except CommandFailed as error:
        return replace(facts, unseen=(*facts.unseen, f"the settings of the group ({error})"))
    values = {name: entry.value or "" for name, entry in found.items()}
    defaults = Settings()
    settings = Settings(
        _number(values.get(LIMIT), defaults.delivery_limit),
        _number(values.get(LOCKS), defaults.max_locks),
        values.get(ISOLATION) == "read_committed",
        values.get(DEAD_LETTERS, ""),
    )
    return replace(facts, settings=settings)


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() else default


def _with_pages(facts: RecordFacts, endpoints: Sequence[str], access: Access) -> RecordFacts:
    """With what nodes know: of the leader, and of the share coordinator."""
    reader = Reader(access)
    leader: Any = None
    stored: Any = None
    unseen = list(facts.unseen)
    for endpoint in endpoints:
        try:
            pages = reader.share_record(endpoint, facts.group, facts.topic, facts.partition, facts.offset)
        except CommandFailed as error:
            unseen.append(f"the facts of a node ({error})")
            continue
        for page in pages:
            leader = page["leader"] or leader
            stored = page["stored"] or stored
    if leader is None:
        unseen.append(
            "who holds the record, and what is in flight: only the partition's leader knows that; name its tidelog.http.listener "
            "with --endpoint"
        )
    return replace(facts, leader=leader, stored=stored, unseen=tuple(unseen))


def _with_letter(reader: LogReader, facts: RecordFacts) -> RecordFacts:
    """With the dead letter of the record, if the group may have given it up."""
    topic = facts.settings.dead_letter_topic
    below = facts.start is not None and facts.offset < facts.start
    state = None if facts.range is None else facts.range["state"]
    if not topic or not (below or state == "archived"):
        return facts
    try:
        letter, all_read = find_letter(reader, topic, facts)
    except (CommandFailed, CannotConnect) as error:
        return replace(facts, unseen=(*facts.unseen, f"the dead-letter topic ({error})"))
    if letter is not None:
        return replace(facts, letter=(topic, letter))
    return (
        facts if all_read else replace(facts, unseen=(*facts.unseen, f"dead letters behind the first {MOST_LETTERS} of {topic}"))
    )


def find_letter(reader: LogReader, topic: str, facts: RecordFacts) -> tuple[Letter | None, bool]:
    """The last dead letter of the record, and whether all dead letters were read that may be its."""
    since = facts.log.timestamp if facts.log.timestamp >= 0 else None
    choice = Choice(groups=frozenset({facts.group}), topics={facts.topic: frozenset({facts.partition})})
    ranges = reader.ranges(topic, since)
    # The dead letters of a partition are in one partition, as long as the topic has the same number of them.
    likely = facts.partition % len(ranges)
    found: Letter | None = None
    count = 0
    for at, within in sorted(ranges.items(), key=lambda each: each[0].partition != likely):
        for record in reader.scan(at, within):
            count += 1
            if count > MOST_LETTERS:
                return found, False
            letter = letter_of(at.partition, record)
            if letter is not None and letter.source.offset == facts.offset and choice.takes(letter):
                found = letter
        if found is not None:
            return found, True
    return found, True
