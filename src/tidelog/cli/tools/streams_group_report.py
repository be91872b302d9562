"""The tables of ``streams-groups`` for a group, as columns and rows, and the topics of a group."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidelog.cli.admin_session import AdminSession, Partition
from tidelog.cli.columns import Column, Row
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.group_state import DEAD, EMPTY, committed
from tidelog.client.admin import streams_groups
from tidelog.client.admin.group_results import StreamsGroup, StreamsMember, StreamsSubtopology, StreamsTasks
from tidelog.config.listeners import address_text
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_EPOCH

Report = tuple[list[Column], list[Row]]
_INTERNAL = re.compile(
    r".+(?:-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic)"
)
"""How Kafka Streams names internal topics, after the application id and a dash."""


def offsets(session: AdminSession, group: StreamsGroup, verbose: bool) -> Report:
    """Each partition that an active task reads, with the committed offset and the lag."""
    partitions = _read_by_tasks(session, group)
    old = committed(session, group.group_id)
    starts = session.list_offsets(dict.fromkeys(partitions, EARLIEST_TIMESTAMP))
    ends = session.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP))
    rows: list[Row] = []
    for partition in partitions:
        at = old.get(partition)
        start, end = (
            found.offset if (found := answers.get(partition)) is not None and found.error_code == ErrorCode.NONE else None
            for answers in (starts, ends)
        )
        done = start if at is None else at.offset
        rows.append(
            {
                "group": group.group_id,
                "topic": partition[0],
                "partition": partition[1],
                "current_offset": None if at is None else at.offset,
                "leader_epoch": None if at is None or at.leader_epoch == NO_EPOCH else at.leader_epoch,
                "log_end_offset": end,
                "lag": None if end is None or done is None else end - done,
            }
        )
    more = [
        Column("CURRENT-OFFSET", "current_offset", 15),
        Column("LEADER-EPOCH", "leader_epoch", 15),
        Column("LOG-END-OFFSET", "log_end_offset", 15),
    ]
    return [
        Column("GROUP", "group", 15),
        Column("TOPIC", "topic", 15),
        Column("PARTITION", "partition", 10),
        *(more if verbose else []),
        Column("OFFSET-LAG", "lag", 0, pad=False),
    ], rows


def _read_by_tasks(session: AdminSession, group: StreamsGroup) -> list[Partition]:
    inputs = {each.subtopology_id: each.source_topics + each.repartition_source_topics for each in group.subtopologies}
    counts: dict[str, int] = {}
    for topic in session.metadata({topic for topics in inputs.values() for topic in topics}):
        counts[topic.name or ""] = len(topic.partitions)
    return sorted(
        {
            (topic, partition)
            for member in group.members
            for subtopology, partition in member.assignment.active
            for topic in inputs.get(subtopology, ())
            if partition < counts[topic]
        }
    )


def members(session: AdminSession, group: StreamsGroup, verbose: bool) -> Report:
    """The members with their tasks, by id."""
    rows: list[Row] = [
        {
            "group": group.group_id,
            "target_assignment_epoch": group.target_epoch,
            "topology_epoch": group.topology_epoch,
            "member": member.member_id,
            "member_protocol": "classic" if member.classic else "streams",
            "member_epoch": member.epoch,
            "process": member.process_id,
            "client_id": member.client_id,
            "assignments": _assignments(member, verbose),
        }
        for member in sorted(group.members, key=lambda member: member.member_id)
    ]
    before = [Column("TARGET-ASSIGNMENT-EPOCH", "target_assignment_epoch", 25), Column("TOPOLOGY-EPOCH", "topology_epoch", 15)]
    after = [Column("MEMBER-PROTOCOL", "member_protocol", 15), Column("MEMBER-EPOCH", "member_epoch", 15)]
    return [
        Column("GROUP", "group", 15),
        *(before if verbose else []),
        Column("MEMBER", "member", 15),
        *(after if verbose else []),
        Column("PROCESS", "process", 15),
        Column("CLIENT-ID", "client_id", 15),
        Column("ASSIGNMENTS", "assignments", 0, pad=False),
    ], rows


def _assignments(member: StreamsMember, verbose: bool) -> str:
    text = _tasks(member.assignment, "")
    return (text + _tasks(member.target, "TARGET-") if verbose else text).rstrip()


def _tasks(tasks: StreamsTasks, prefix: str) -> str:
    """``ACTIVE: 0:[0,1]; 1:[2]; STANDBY: ...``."""
    text = ""
    for role, ids in (("ACTIVE", tasks.active), ("STANDBY", tasks.standby), ("WARMUP", tasks.warmup)):
        by_subtopology: dict[str, list[str]] = {}
        for subtopology, partition in ids:
            by_subtopology.setdefault(subtopology, []).append(str(partition))
        if by_subtopology:
            text += f"{prefix}{role}: " + "".join(f"{key}:[{','.join(each)}]; " for key, each in by_subtopology.items())
    return text


def states(session: AdminSession, group: StreamsGroup, verbose: bool) -> Report:
    """One row: the coordinator and the state of the group."""
    node_id, host, port = session.coordinator(group.group_id)
    row: Row = {
        "group": group.group_id,
        "coordinator": f"{address_text(host, port)} ({node_id})",
        "state": group.state,
        "group_epoch": group.epoch,
        "target_assignment_epoch": group.target_epoch,
        "members": len(group.members),
    }
    more = [Column("GROUP-EPOCH", "group_epoch", 15), Column("TARGET-ASSIGNMENT-EPOCH", "target_assignment_epoch", 25)]
    return [
        Column("GROUP", "group", 15),
        Column("COORDINATOR (ID)", "coordinator", 25),
        Column("STATE", "state", 25),
        *(more if verbose else []),
        Column("#MEMBERS", "members", 0, pad=False),
    ], [row]


def without_members(session: AdminSession, group_id: str) -> StreamsGroup:
    """The group. CommandFailed while it has members."""
    group = session.run(streams_groups.describe(group_id))
    if group.state not in {EMPTY, DEAD}:
        raise CommandFailed(f"Streams group '{group_id}' is {group.state}: stop the application before you move its offsets.")
    return group


def input_topics(session: AdminSession, group: StreamsGroup, named: Sequence[str]) -> list[str]:
    """The topics named, which the group must read, or the partitions of external topics that it has offsets of, as
    ``topic:0,1``. CommandFailed."""
    read = _source_topics(group.subtopologies)
    if named:
        strange = sorted({text.rpartition(":")[0] or text for text in named} - read)
        if strange:
            raise CommandFailed(f"Group '{group.group_id}' does not read {', '.join(strange)}.")
        return list(named)
    external = _external(group)
    by_topic: dict[str, list[str]] = {}
    for topic, partition in sorted(committed(session, group.group_id)):
        if topic in external:
            by_topic.setdefault(topic, []).append(str(partition))
    if not by_topic:
        raise CommandFailed(f"Group '{group.group_id}' has no offsets of topics that it reads.")
    return [f"{topic}:{','.join(partitions)}" for topic, partitions in by_topic.items()]


def _external(group: StreamsGroup) -> set[str]:
    return {topic for each in group.subtopologies for topic in each.source_topics}


def _source_topics(subtopologies: Sequence[StreamsSubtopology]) -> set[str]:
    return {topic for each in subtopologies for topic in each.source_topics + each.repartition_source_topics}


def internal_topics(session: AdminSession, group_id: str, named: Sequence[str] = ()) -> list[str]:
    """The group's repartition and changelog topics that exist, or those named. CommandFailed for a topic that is none of them."""
    group = session.run(streams_groups.describe(group_id))
    external = _external(group)
    known = {topic for each in group.subtopologies for topic in each.repartition_source_topics + each.state_changelog_topics}
    there = {topic.name for topic in session.metadata(known) if topic.error_code == ErrorCode.NONE} if known else set()
    found = sorted(
        topic for topic in (known & there) - external if topic.startswith(f"{group_id}-") and _INTERNAL.fullmatch(topic)
    )
    if named:
        strange = sorted(set(named) - set(found))
        if strange:
            raise CommandFailed(f"Group '{group_id}' has no internal topic {', '.join(strange)}.")
        return sorted(set(named))
    return found
