"""The leader's answers to FetchSnapshot: a metadata snapshot, part by part (KIP-630)."""

from __future__ import annotations

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ResponsePartitionSnapshot,
    ResponseTopicSnapshot,
)
from tidelog.raft import messages
from tidelog.raft.effects import Inbound, ReplySnapshotPart
from tidelog.raft.leader_fetch import not_leading
from tidelog.raft.quorum import Quorum
from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voter_requests import wrong_cluster
from tidelog.raft.voters import ReplicaKey


def fetch_snapshot(quorum: Quorum, inbound: Inbound, request: FetchSnapshotRequest, now_ms: int) -> None:
    """Sent by a replica that was pointed to a snapshot, part by part.

    Errors: the leader's, SNAPSHOT_NOT_FOUND when it is gone (the fetcher asks again what to fetch), POSITION_OUT_OF_RANGE.
    """
    asked = messages.only_partition(request, "name")
    if wrong_cluster(quorum, request.cluster_id):
        quorum.out.reply(inbound, FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    if asked is None:
        quorum.out.reply(inbound, _unknown_partition(request))
        return
    error = not_leading(quorum, asked.current_leader_epoch)
    wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    size = quorum.log.shape.snapshots.get(wanted)
    if error is ErrorCode.NONE:
        if size is None:
            error = ErrorCode.SNAPSHOT_NOT_FOUND
        elif not 0 <= asked.position < size:
            error = ErrorCode.POSITION_OUT_OF_RANGE
    answer = messages.fetch_snapshot_answer(quorum, inbound, error, asked)
    if error is not ErrorCode.NONE or size is None:
        quorum.out.reply(inbound, answer)
        return
    answer.topics[0].partitions[0].size = size
    quorum.leading().heard(ReplicaKey(request.replica_id, Uuid(asked.replica_directory_id)), now_ms)
    limit = min(max(request.max_bytes, 0), quorum.config.snapshot_max_bytes)
    quorum.out.add(ReplySnapshotPart(inbound.token, answer, wanted, asked.position, limit))


def _unknown_partition(request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    topic = request.topics[0]
    partition = ResponsePartitionSnapshot(index=topic.partitions[0].partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return FetchSnapshotResponse(topics=[ResponseTopicSnapshot(name=topic.name, partitions=[partition])])
