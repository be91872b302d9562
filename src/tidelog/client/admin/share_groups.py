"""Share groups (KIP-932): members, start offsets, lag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.admin.group_results import ShareGroup, ShareMember, ShareOffset
from tidelog.client.admin.groups import DEAD
from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Coordinator, Partition
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tidelog.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from tidelog.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponsePartition,
)
from tidelog.protocol.messages.share_group_describe import ShareGroupDescribeRequest

UNKNOWN = -1


def describe(group_id: str) -> Call[ShareGroup]:
    """A share group with its members. KafkaError (GROUP_ID_NOT_FOUND) if there is none with this name."""
    request = ShareGroupDescribeRequest(group_ids=[group_id])
    response = yield Ask(request, Coordinator(group_id), code_of=lambda answer: int(answer.groups[0].error_code))
    (found,) = response.groups
    check(found.error_code, found.error_message)
    members = tuple(
        ShareMember(
            member.member_id,
            member.client_id,
            member.client_host,
            member.member_epoch,
            tuple(sorted((topic.topic_name, at) for topic in member.assignment.topic_partitions for at in topic.partitions)),
            tuple(sorted(member.subscribed_topic_names)),
        )
        for member in found.members
    )
    return ShareGroup(found.group_id, found.group_state, found.assignor_name, members, found.group_epoch, found.assignment_epoch)


def state(group_id: str) -> Call[str]:
    """The state of a share group; Dead if there is none with this name. KafkaError."""
    try:
        found = yield from describe(group_id)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return DEAD
    return found.state


def offsets(group_id: str) -> Call[dict[Partition, ShareOffset]]:
    """The start offset of each partition that the group has read. KafkaError, such as GROUP_ID_NOT_FOUND."""
    request = DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)])
    response = yield Ask(request, Coordinator(group_id), code_of=lambda answer: int(answer.groups[0].error_code))
    (found,) = response.groups
    check(found.error_code, found.error_message)
    return {
        (topic.topic_name, part.partition_index): _offset(part)
        for topic in found.topics
        for part in topic.partitions
        if part.error_code == ErrorCode.NONE
    }


def _offset(part: DescribeShareGroupOffsetsResponsePartition) -> ShareOffset:
    if part.start_offset == UNKNOWN:
        return ShareOffset(None, None, None)
    return ShareOffset(part.start_offset, _known(part.leader_epoch), _known(part.lag))


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def alter_offsets(group_id: str, start_offsets: Mapping[Partition, int]) -> Call[dict[Partition, KafkaError]]:
    """Set start offsets of a group without members, and forget what was delivered; creates the group if it is missing.

    Returns the partitions that failed. KafkaError, such as NON_EMPTY_GROUP.
    """
    parts: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, at), offset in sorted(start_offsets.items()):
        parts.setdefault(topic, []).append(AlterShareGroupOffsetsRequestPartition(partition_index=at, start_offset=offset))
    topics = [AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=found) for name, found in parts.items()]
    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    response = yield Ask(request, Coordinator(group_id), code_of=lambda answer: int(answer.error_code))
    check(response.error_code, response.error_message)
    return {
        (topic.topic_name, part.partition_index): _error(part.error_code, part.error_message)
        for topic in response.responses
        for part in topic.partitions
        if part.error_code != ErrorCode.NONE
    }


def delete_offsets(group_id: str, topics: Iterable[str]) -> Call[dict[str, KafkaError]]:
    """Delete the start offsets of whole topics; the group must have no members.

    Returns the topics that failed. KafkaError, such as NON_EMPTY_GROUP.
    """
    asked = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    request = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=asked)
    response = yield Ask(request, Coordinator(group_id), code_of=lambda answer: int(answer.error_code))
    check(response.error_code, response.error_message)
    return {
        topic.topic_name: _error(topic.error_code, topic.error_message)
        for topic in response.responses
        if topic.error_code != ErrorCode.NONE
    }


def _error(code: int, message: str | None) -> KafkaError:
    known = ErrorCode(code)
    return KafkaError(known, message or known.text)
