"""A pipeline's progress, committed to the cluster as the offsets of a consumer group, so that every lag tool shows it.

The group has no members, and a pipeline never reads these offsets: the tables know its position. A cluster that refuses them does
not stop it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.model.errors import ErrorCode
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tidelog.spark.cluster import Cluster

PATIENCE_MS = 5000


class GroupOffsets:
    """Commits for one group."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster = cluster
        self._group = group

    def commit(self, ranges: Iterable[OffsetRange]) -> str:
        """Commit the ends of the ranges. Empty on success, else the last problem."""
        request = commit_request(self._group, ranges)
        problem = "no answer"
        for _ in self._cluster.pauses(PATIENCE_MS):
            try:
                problem = self._once(request)
            except (NoConnection, OSError) as error:
                problem = str(error)
            except (NotAuthenticated, UnsupportedByBroker) as error:
                return str(error)
            if not problem:
                return ""
        return problem

    def _once(self, request: OffsetCommitRequest) -> str:
        # Version 3 asks for one group, later versions for several.
        asked = FindCoordinatorRequest(key=self._group, key_type=0)
        found: Any = self._cluster.ask(self._cluster.any_socket(), asked, highest=3)
        code = ErrorCode(found.error_code)
        if code != ErrorCode.NONE:
            return code.name
        coordinator = self._cluster.socket_at((found.host, found.port))
        # Version 9 is the last that names topics.
        return problem_of(self._cluster.ask(coordinator, request, highest=9))


def commit_request(group: str, ranges: Iterable[OffsetRange]) -> OffsetCommitRequest:
    """The ends of the ranges, committed without a member: generation -1."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for piece in ranges:
        partition = OffsetCommitRequestPartition(partition_index=piece.partition, committed_offset=piece.end)
        topics.setdefault(piece.topic, []).append(partition)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def problem_of(response: Any) -> str:
    """The first error in an answer that matters; empty if there is none."""
    return next(_problems(response), "")


def _problems(response: Any) -> Iterator[str]:
    for topic in response.topics:
        for partition in topic.partitions:
            code = ErrorCode(partition.error_code)
            if code != ErrorCode.NONE:
                yield f"{topic.name}-{partition.partition_index}: {code.name}"


def least(told: Iterable[tuple[OffsetRange, ...]]) -> tuple[OffsetRange, ...]:
    """The position that all queries have reached. Queries that read one topic share its group, so the slowest one counts."""
    ends: dict[tuple[str, str, int], OffsetRange] = {}
    for piece in (piece for ranges in told for piece in ranges):
        known = ends.setdefault((piece.topic, piece.topic_id, piece.partition), piece)
        if piece.end < known.end:
            ends[piece.topic, piece.topic_id, piece.partition] = piece
    return tuple(sorted(ends.values()))
