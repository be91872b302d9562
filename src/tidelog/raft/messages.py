"""Raft's requests and answers as messages: one partition, ``__cluster_metadata``-0, in the structures of the APIs.

All fields are filled as Kafka 4.3 does. The leader's endpoints are in answers from the version that has a field for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from tidelog.protocol.messages import begin_quorum_epoch as begin
from tidelog.protocol.messages import end_quorum_epoch as end
from tidelog.protocol.messages import fetch, fetch_snapshot, vote
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest
from tidelog.protocol.messages.add_raft_voter import Listener as AddListener
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tidelog.protocol.messages.update_raft_voter import (
    CurrentLeader,
    KRaftVersionFeature,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from tidelog.protocol.messages.update_raft_voter import Listener as UpdateListener
from tidelog.raft.effects import Inbound
from tidelog.raft.election import Resigned
from tidelog.raft.follower_state import FetchingSnapshot
from tidelog.raft.log_shape import Fit, Fitness
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.raft_log import RaftLog
from tidelog.raft.voters import ReplicaKey, endpoint_on
from tidelog.records.control import Endpoint

ENDPOINTS_IN_FETCH = 16
RAFT_IN_FETCH = 12
"""From this version of Fetch on, answers hold leader, divergence and snapshot."""
HIGHEST_KRAFT_VERSION = 1
AUTO_JOIN_TIMEOUT_MS = 2000


class Standing(Protocol):
    """What messages say about a replica: its id, its epoch, and the leader."""

    @property
    def config(self) -> RaftConfig: ...
    @property
    def me(self) -> ReplicaKey: ...
    @property
    def log(self) -> RaftLog: ...
    @property
    def epoch(self) -> int: ...
    @property
    def leader_id(self) -> int: ...
    @property
    def leader_endpoints(self) -> tuple[Endpoint, ...]: ...


def only_partition(message: Any, name: str = "topic_name") -> Any | None:
    """The partition of a request or answer about ``__cluster_metadata``-0 alone; None for any other."""
    if len(message.topics) != 1 or getattr(message.topics[0], name) != METADATA_TOPIC or len(message.topics[0].partitions) != 1:
        return None
    partition = message.topics[0].partitions[0]
    index = partition.partition_index if name == "topic_name" else getattr(partition, "partition", getattr(partition, "index", 0))
    return partition if index == 0 else None


def fetched_partition(topics: Sequence[Any], index: str) -> Any | None:
    """As ``only_partition`` for Fetch, which names topics by id, or by name below version 13."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    if topics[0].topic_id != METADATA_TOPIC_ID and topics[0].topic != METADATA_TOPIC:
        return None
    partition = topics[0].partitions[0]
    return partition if getattr(partition, index) == 0 else None


def _leader_endpoint(standing: Standing, listener: str) -> Endpoint | None:
    """The leader's address for a request that came in on ``listener``.

    None where this node has several controller listeners and does not know that one of the leader: on another one, the node that
    asks would speak the wrong protocol. Its own voters may say more.
    """
    known = *standing.leader_endpoints, *standing.log.voters.endpoints_of(standing.leader_id)
    several = len(standing.config.endpoints) > 1
    return endpoint_on([each for each in known if each.name == listener] if several else known, listener)


def _nodes(standing: Standing, inbound: Inbound, node: Any, since: int) -> list[Any]:
    at = _leader_endpoint(standing, inbound.listener)
    if at is None or inbound.version < since:
        return []
    return [node(node_id=standing.leader_id, host=at.host, port=at.port)]


# Votes


def vote_request(standing: Standing, voter: ReplicaKey, pre_vote: bool) -> vote.VoteRequest:
    mine = standing.log.shape.end
    partition = vote.RequestPartitionData(
        replica_epoch=standing.epoch,
        replica_id=standing.me.id,
        replica_directory_id=standing.me.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=mine.epoch,
        last_offset=mine.offset,
        pre_vote=pre_vote,
    )
    topic = vote.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return vote.VoteRequest(cluster_id=standing.config.cluster_id, voter_id=voter.id, topics=[topic])


def vote_answer(standing: Standing, inbound: Inbound, error: ErrorCode, granted: bool) -> vote.VoteResponse:
    partition = vote.ResponsePartitionData(
        error_code=error, leader_id=standing.leader_id, leader_epoch=standing.epoch, vote_granted=granted
    )
    topic = vote.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return vote.VoteResponse(topics=[topic], node_endpoints=_nodes(standing, inbound, vote.NodeEndpoint, 1))


# The begin and the end of an epoch


def begin_request(standing: Standing, voter: ReplicaKey) -> begin.BeginQuorumEpochRequest:
    partition = begin.RequestPartitionData(
        voter_directory_id=voter.directory_id, leader_id=standing.me.id, leader_epoch=standing.epoch
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=standing.config.cluster_id,
        voter_id=voter.id,
        topics=[begin.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[begin.LeaderEndpoint(each.name, each.host, each.port) for each in standing.config.endpoints],
    )


def begin_answer(standing: Standing, inbound: Inbound, error: ErrorCode) -> begin.BeginQuorumEpochResponse:
    partition = begin.ResponsePartitionData(error_code=error, leader_id=standing.leader_id, leader_epoch=standing.epoch)
    topic = begin.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return begin.BeginQuorumEpochResponse(topics=[topic], node_endpoints=_nodes(standing, inbound, begin.NodeEndpoint, 1))


def end_request(standing: Standing, state: Resigned) -> end.EndQuorumEpochRequest:
    partition = end.RequestPartitionData(
        leader_id=standing.me.id,
        leader_epoch=standing.epoch,
        preferred_successors=[key.id for key in state.preferred],
        preferred_candidates=[end.ReplicaInfo(key.id, key.directory_id) for key in state.preferred],
    )
    return end.EndQuorumEpochRequest(
        cluster_id=standing.config.cluster_id,
        topics=[end.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[end.LeaderEndpoint(each.name, each.host, each.port) for each in standing.config.endpoints],
    )


def end_answer(standing: Standing, inbound: Inbound, error: ErrorCode) -> end.EndQuorumEpochResponse:
    partition = end.ResponsePartitionData(error_code=error, leader_id=standing.leader_id, leader_epoch=standing.epoch)
    topic = end.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return end.EndQuorumEpochResponse(topics=[topic], node_endpoints=_nodes(standing, inbound, end.NodeEndpoint, 1))


# Fetching


def fetch_request(standing: Standing) -> fetch.FetchRequest:
    """``last_fetched_epoch`` is 0, never -1, for an empty log, as Kafka's voters expect; ``max_bytes`` alone bounds the
    answer."""
    mine = standing.log.shape.end
    partition = fetch.FetchPartition(
        current_leader_epoch=standing.epoch,
        fetch_offset=mine.offset,
        last_fetched_epoch=mine.epoch,
        replica_directory_id=standing.me.directory_id,
        high_watermark=standing.log.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=standing.config.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=standing.me.id),
        max_wait_ms=standing.config.fetch_max_wait_ms,
        max_bytes=standing.config.fetch_max_bytes,
        topics=[fetch.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def fetch_answer(
    standing: Standing,
    inbound: Inbound,
    error: ErrorCode,
    *,
    fitness: Fitness | None = None,
    high_watermark: int | None = None,
) -> fetch.FetchResponse:
    """Without records, which are added when the answer is sent."""
    partition = fetch.PartitionData(
        error_code=error,
        high_watermark=-1 if high_watermark is None else high_watermark,
        log_start_offset=standing.log.shape.start_offset,
        aborted_transactions=None,
        records=b"",
    )
    if inbound.version >= RAFT_IN_FETCH:
        partition.current_leader = fetch.LeaderIdAndEpoch(standing.leader_id, standing.epoch)
    else:
        fitness = None  # Older versions have no fields for these.
    if fitness is not None and fitness.fit is Fit.DIVERGING:
        partition.diverging_epoch = fetch.EpochEndOffset(fitness.at.epoch, fitness.at.offset)
    elif fitness is not None and fitness.fit is Fit.SNAPSHOT:
        partition.snapshot_id = fetch.SnapshotId(fitness.at.offset, fitness.at.epoch)
    topic = fetch.FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return fetch.FetchResponse(
        responses=[topic], node_endpoints=_nodes(standing, inbound, fetch.NodeEndpoint, ENDPOINTS_IN_FETCH)
    )


def fetch_snapshot_request(standing: Standing, wanted: FetchingSnapshot) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.RequestPartitionSnapshot(
        current_leader_epoch=standing.epoch,
        snapshot_id=fetch_snapshot.RequestSnapshotId(wanted.snapshot_id.offset, wanted.snapshot_id.epoch),
        position=wanted.position,
        replica_directory_id=standing.me.directory_id,
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=standing.config.cluster_id,
        replica_id=standing.me.id,
        max_bytes=standing.config.snapshot_max_bytes,
        topics=[fetch_snapshot.RequestTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


def fetch_snapshot_answer(
    standing: Standing, inbound: Inbound, error: ErrorCode, asked: fetch_snapshot.RequestPartitionSnapshot
) -> fetch_snapshot.FetchSnapshotResponse:
    """Without bytes and size, which are added when the answer is sent."""
    partition = fetch_snapshot.ResponsePartitionSnapshot(
        error_code=error, current_leader=fetch_snapshot.LeaderIdAndEpoch(standing.leader_id, standing.epoch)
    )
    if error is ErrorCode.NONE:
        partition.snapshot_id = fetch_snapshot.ResponseSnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        partition.position = asked.position
    topic = fetch_snapshot.ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return fetch_snapshot.FetchSnapshotResponse(
        topics=[topic], node_endpoints=_nodes(standing, inbound, fetch_snapshot.NodeEndpoint, 1)
    )


# Voters


def update_voter_request(standing: Standing) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=standing.config.cluster_id,
        current_leader_epoch=standing.epoch,
        voter_id=standing.me.id,
        voter_directory_id=standing.me.directory_id,
        listeners=[UpdateListener(each.name, each.host, each.port) for each in standing.config.endpoints],
        kraft_version_feature=KRaftVersionFeature(0, HIGHEST_KRAFT_VERSION),
    )


def update_voter_answer(standing: Standing, inbound: Inbound, error: ErrorCode) -> UpdateRaftVoterResponse:
    leader = CurrentLeader(leader_id=standing.leader_id, leader_epoch=standing.epoch)
    at = _leader_endpoint(standing, inbound.listener)
    if at is not None:
        leader.host, leader.port = at.host, at.port
    return UpdateRaftVoterResponse(error_code=error, current_leader=leader)


def join_request(standing: Standing) -> AddRaftVoterRequest:
    """The request of a controller that joins by itself."""
    return AddRaftVoterRequest(
        cluster_id=standing.config.cluster_id,
        timeout_ms=AUTO_JOIN_TIMEOUT_MS,
        voter_id=standing.me.id,
        voter_directory_id=standing.me.directory_id,
        listeners=[AddListener(each.name, each.host, each.port) for each in standing.config.endpoints],
        ack_when_committed=False,
    )


def leave_request(standing: Standing, key: ReplicaKey) -> RemoveRaftVoterRequest:
    """Sent first when the id still belongs to an earlier disk."""
    return RemoveRaftVoterRequest(cluster_id=standing.config.cluster_id, voter_id=key.id, voter_directory_id=key.directory_id)
