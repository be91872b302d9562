"""Collects a streams group: its members with the partitions of their tasks, and its topology."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.client.admin import streams_groups
from tidelog.client.admin.group_results import StreamsGroup, StreamsMember, StreamsTasks
from tidelog.client.admin.topics import topics as topics_call
from tidelog.client.calls import Call, Partition
from tidelog.console.group_facts import STREAMS, MemberFacts, Sample, StreamsFacts
from tidelog.model.errors import ErrorCode


def streams_group(group_id: str, now_ms: int) -> Call[Sample]:
    """The group without offsets. KafkaError, such as GROUP_ID_NOT_FOUND."""
    found = yield from streams_groups.describe(group_id)
    names = sorted({name for each in found.subtopologies for name in (*each.source_topics, *each.repartition_source_topics)})
    there = (yield from topics_call(names)) if names else []
    counts = {topic.name or "": len(topic.partitions) for topic in there if topic.error_code == ErrorCode.NONE}
    read = {each.subtopology_id: (*each.source_topics, *each.repartition_source_topics) for each in found.subtopologies}
    members = tuple(_member(each, read, counts) for each in found.members)
    return Sample(
        now_ms, found.state, STREAMS, "streams", found.epoch, members, streams=topology(found)
    )  # offsets are those of a consumer group


def topology(found: StreamsGroup) -> StreamsFacts:
    """What the topology needs, and who has another one."""
    return StreamsFacts(
        found.topology_epoch,
        tuple((each.subtopology_id, each.source_topics) for each in found.subtopologies),
        frozenset(name for each in found.subtopologies for name in each.source_topics),
        frozenset(
            name for each in found.subtopologies for name in (*each.repartition_source_topics, *each.state_changelog_topics)
        ),
        tuple(
            f"{each.client_id} at {each.host.lstrip('/')}: topology epoch {each.topology_epoch}"
            for each in found.members
            if each.topology_epoch != found.topology_epoch
        ),
    )


def _member(found: StreamsMember, read: Mapping[str, tuple[str, ...]], counts: Mapping[str, int]) -> MemberFacts:
    def partitions(tasks: StreamsTasks) -> frozenset[Partition]:
        return frozenset(
            (topic, partition)
            for subtopology, partition in tasks.active
            for topic in read.get(subtopology, ())
            if partition < counts.get(topic, 0)
        )

    return MemberFacts(
        found.member_id,
        found.client_id,
        found.host,
        found.instance_id,
        partitions(found.assignment),
        partitions(found.target),
    )
