"""Computes new offsets of a group: the forms of ``consumer-groups --reset-offsets``.

A plan has the new offset of each partition, within the range of the log; the caller decides whether to execute it. Dates without
a zone are UTC, as in Kafka's tool.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidelog.cli.admin_session import AdminSession, Partition
from tidelog.cli.refusal import CommandFailed, error_text, text_of
from tidelog.cli.tools.group_state import Committed, committed
from tidelog.client.admin import groups
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_OFFSET

_DURATION = re.compile(r"([+-])?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE)
Plan = dict[Partition, int]


@dataclass(frozen=True, slots=True)
class Target:
    """The requested position; ``kind`` is the flag without its dashes, ``value`` its argument."""

    kind: str
    value: str = ""


def plan(session: AdminSession, group_id: str, target: Target, topics: Iterable[str], now_ms: int) -> Plan:
    """The new offset of each partition. ``topics`` as in ``--topic``; empty for all topics with offsets of the group."""
    old = committed(session, group_id)
    if target.kind == "from-file":
        return within_log(session, from_file(target.value, group_id))
    partitions = selected(session, topics) or sorted(old)
    if target.kind == "to-offset":
        return within_log(session, dict.fromkeys(partitions, int(target.value)))
    if target.kind == "shift-by":
        return within_log(session, shifted(partitions, old, int(target.value)))
    if target.kind == "to-current":
        there = {partition: old[partition].offset for partition in partitions if partition in old}
        missing = [partition for partition in partitions if partition not in old]
        return within_log(session, there) | offsets_at(session, missing, LATEST_TIMESTAMP)
    return at_time(session, partitions, target, now_ms)


def at_time(session: AdminSession, partitions: Iterable[Partition], target: Target, now_ms: int) -> Plan:
    """The new offset of each partition for a target that depends on no old offset."""
    if target.kind == "to-earliest":
        return offsets_at(session, partitions, EARLIEST_TIMESTAMP)
    if target.kind == "to-latest":
        return offsets_at(session, partitions, LATEST_TIMESTAMP)
    if target.kind == "by-duration":
        return offsets_at(session, partitions, now_ms - milliseconds(target.value))
    assert target.kind == "to-datetime"
    return offsets_at(session, partitions, timestamp_ms(target.value))


def selected(session: AdminSession, topics: Iterable[str]) -> list[Partition]:
    """Arguments ``topic`` or ``topic:0,1``. CommandFailed for an unknown topic or malformed numbers."""
    chosen: list[Partition] = []
    for text in topics:
        topic, colon, numbers = text.rpartition(":")
        if not colon:
            chosen += session.partitions(text)
        elif all(number.isdecimal() for number in numbers.split(",")):
            chosen += [(topic, int(number)) for number in numbers.split(",")]
        else:
            raise CommandFailed(f"--topic {text}: partitions are numbers, joined by commas: {topic}:0,1")
    return sorted(set(chosen))


def offsets_at(session: AdminSession, partitions: Iterable[Partition], timestamp: int) -> Plan:
    """The first offset at or after a time; the end if there is none."""
    found = session.list_offsets(dict.fromkeys(partitions, timestamp))
    result: Plan = {}
    for partition in partitions:
        answer = found.get(partition)
        if answer is None or answer.error_code != ErrorCode.NONE:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if answer is None else answer.error_code
            raise CommandFailed(f"Partition {partition[1]} of topic {partition[0]}: {error_text(code)}")
        result[partition] = answer.offset
    late = [partition for partition, offset in result.items() if offset == NO_OFFSET]
    for topic, index in late:
        print(f"Warn: {topic}-{index} has no record that late; its end offset is taken.")
    return result | (offsets_at(session, late, LATEST_TIMESTAMP) if late else {})


def within_log(session: AdminSession, wanted: Plan) -> Plan:
    """Limits offsets to the range of the log, with a warning on stderr."""
    earliest = offsets_at(session, wanted, EARLIEST_TIMESTAMP)
    latest = offsets_at(session, wanted, LATEST_TIMESTAMP)
    result: Plan = {}
    for (topic, index), offset in wanted.items():
        low, high = earliest[topic, index], latest[topic, index]
        result[topic, index] = fits = min(max(offset, low), high)
        if fits != offset:
            side = "higher than latest" if offset > high else "lower than earliest"
            print(
                f"WARN New offset ({offset}) is {side} offset for topic partition {topic}-{index}. Value will be set to {fits}",
                file=sys.stderr,
            )
    return result


def shifted(partitions: Iterable[Partition], old: Mapping[Partition, Committed], by: int) -> Plan:
    """Shifts each committed offset. CommandFailed for a partition without one."""
    result: Plan = {}
    for topic, index in partitions:
        if (topic, index) not in old:
            raise CommandFailed(
                f"--shift-by moves a committed offset, and the group has none for {topic}-{index}: use --to-offset"
            )
        result[topic, index] = old[topic, index].offset + by
    return result


def from_file(path: str, group_id: str) -> Plan:
    """Lines of ``topic,partition,offset``, or with the group as first field, of which those of ``group_id`` count."""
    result: Plan = {}
    for number, row in enumerate(csv.reader(io.StringIO(text_of(path), newline="")), 1):
        fields = [field.strip() for field in row]
        if not fields:
            continue
        if len(fields) not in {3, 4} or not all(field.isdecimal() for field in fields[-2:]):
            raise CommandFailed(f"Line {number} of {path} is not [GROUP,]TOPIC,PARTITION,OFFSET: {','.join(row)}")
        if len(fields) == 3 or fields[0] == group_id:
            result[fields[-3], int(fields[-2])] = int(fields[-1])
    return result


def milliseconds(text: str) -> int:
    """The duration ``PnDTnHnMnS`` in ms."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()[1:]):
        raise CommandFailed(f"--by-duration {text}: write it as PnDTnHnMnS, such as P1D, PT1H30M or PT0.5S")
    sign, days, hours, minutes, seconds = match.groups()
    length = timedelta(days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=float(seconds or 0))
    return round(length / timedelta(milliseconds=1)) * (-1 if sign == "-" else 1)


def timestamp_ms(text: str) -> int:
    """An ISO 8601 date and time in ms since 1970; UTC without a zone."""
    try:
        if "T" not in text:
            raise ValueError("it does not contain a 'T'")
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandFailed(f"--to-datetime {text}: {error}; write it as YYYY-MM-DDThh:mm:ss.sss") from error
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)


def carry_out(session: AdminSession, group_id: str, new: Plan) -> None:
    """Commits the plan. CommandFailed names the partitions that failed."""
    failed = session.run(groups.commit(group_id, new))
    if failed:
        named = ", ".join(f"{topic}-{index} ({error})" for (topic, index), error in failed.items())
        raise CommandFailed(f"Offsets of group {group_id} were not set: {named}")
