"""A quorum's machine in the hands of a test: events in, what it wants done in lists by kind."""

import random
from typing import Any

from tidelog.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, Uuid
from tidelog.model.machine import Token
from tidelog.protocol.messages import begin_quorum_epoch as begin
from tidelog.protocol.messages import end_quorum_epoch as end
from tidelog.protocol.messages import fetch, fetch_snapshot, vote
from tidelog.raft.effects import Effect, Persist, Reply, ReplyRecords, ReplySnapshotPart, Send
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd, LogShape
from tidelog.raft.machine import RaftMachine
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.voter_history import VoterSets
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint, Voter

CLUSTER = "c"


def disk(node_id: int) -> Uuid:
    return Uuid(bytes([node_id]) * 16)


def at(node_id: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"h{node_id}", 9000 + node_id)


def voters(*ids: int, dynamic: bool = True) -> VoterSet:
    return VoterSet.of([Voter(each, disk(each) if dynamic else bytes(16), (at(each),)) for each in ids])


class Driver:
    """Node 1 of voters 1, 2, 3, dynamic; its log as if written to disk at once when ``sync`` is called."""

    def __init__(
        self,
        members: VoterSet | None = None,
        *,
        shape: LogShape | None = None,
        state: QuorumState | None = None,
        level: int = 1,
        said_at: int = -1,
        lost_end: LogEnd = NOTHING_LOST,
        witnesses: tuple[ReplicaKey, ...] = (),
        endpoints: tuple[Endpoint, ...] = (at(1),),
        **config: Any,
    ) -> None:
        self.now = 10_000
        self.config = RaftConfig(ReplicaKey(1, disk(1)), CLUSTER, endpoints, **config)
        self.machine = RaftMachine(
            self.config,
            shape=shape or LogShape(),
            sets=VoterSets(voters(1, 2, 3) if members is None else members, level, said_at),
            state=state,
            rng=random.Random(7),
            now_ms=self.now,
            lost_end=lost_end,
            witnesses=witnesses,
        )
        self.done: list[Effect] = []
        self.tokens = 0
        self.did(self.machine.tick(self.now))

    @property
    def quorum(self) -> Any:
        return self.machine.quorum

    def did(self, effects: list[Effect]) -> list[Effect]:
        self.machine.check()
        self.done += effects
        return effects

    def of(self, kind: type) -> list[Any]:
        """All effects of a kind so far."""
        return [each for each in self.done if isinstance(each, kind)]

    def sends(self, request: type) -> dict[int, Send]:
        """The last request of a kind to each node."""
        return {each.to.id: each for each in self.of(Send) if isinstance(each.request, request)}

    @property
    def persisted(self) -> QuorumState | None:
        found = self.of(Persist)
        return found[-1].state if found else None

    def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer, or None while it waits."""
        self.tokens += 1
        token = Token(self.tokens)
        version = request.MAX_VERSION if version is None else version
        self.did(self.machine.request(token, request.API_KEY, version, "CONTROLLER", request, self.now))
        return self.answer_to(token)

    def answer_to(self, token: int) -> Any:
        for each in self.done:
            if isinstance(each, (Reply, ReplyRecords, ReplySnapshotPart)) and each.token == token:
                return each.response
        return None

    def answer(self, send: Send, message: Any) -> list[Effect]:
        return self.did(self.machine.answer(send.request_id, message, self.now))

    def pass_time(self, ms: int) -> None:
        self.now += ms
        self.did(self.machine.tick(self.now))

    def sync(self) -> None:
        shape = self.quorum.log.shape
        self.did(self.machine.log_synced(shape.end_offset, shape.generation, self.now))

    def elect(self) -> None:
        """It becomes the leader, in the next epoch, with the votes of 2."""
        self.pass_time(2_001)
        self.answer(self.sends(vote.VoteRequest)[2], vote_answer(self.machine.epoch, granted=True))
        self.answer(self.sends(vote.VoteRequest)[2], vote_answer(self.machine.epoch, granted=True))
        assert self.machine.is_leader

    def commit(self) -> None:
        """What is in the log is safe here and on 2."""
        self.sync()
        end_ = self.quorum.log.shape.end
        self.ask(fetch_request(2, self.machine.epoch, end_.offset, end_.epoch, max_wait_ms=0))

    def follow(self, epoch: int = 1, leader: int = 2) -> None:
        self.ask(begin_request(leader, epoch))


def vote_request(
    candidate: int,
    epoch: int,
    last: tuple[int, int] = (0, 0),
    *,
    pre_vote: bool = False,
    to: int = 1,
    cluster: str | None = CLUSTER,
) -> vote.VoteRequest:
    """``last`` is (epoch, end offset)."""
    partition = vote.RequestPartitionData(0, epoch, candidate, disk(candidate), disk(to), last[0], last[1], pre_vote)
    return vote.VoteRequest(cluster, to, [vote.RequestTopicData(METADATA_TOPIC, [partition])])


def vote_answer(epoch: int, *, granted: bool, error: int = 0, leader: int = -1) -> vote.VoteResponse:
    partition = vote.ResponsePartitionData(0, error, leader, epoch, granted)
    return vote.VoteResponse(0, [vote.ResponseTopicData(METADATA_TOPIC, [partition])])


def begin_request(leader: int, epoch: int, where: Endpoint | None = None) -> begin.BeginQuorumEpochRequest:
    partition = begin.RequestPartitionData(0, disk(1), leader, epoch)
    where = where or at(leader)
    return begin.BeginQuorumEpochRequest(
        CLUSTER,
        1,
        [begin.RequestTopicData(METADATA_TOPIC, [partition])],
        [begin.LeaderEndpoint(where.name, where.host, where.port)],
    )


def end_request(leader: int, epoch: int, preferred: tuple[int, ...]) -> end.EndQuorumEpochRequest:
    wanted = [end.ReplicaInfo(each, disk(each)) for each in preferred]
    partition = end.RequestPartitionData(0, leader, epoch, list(preferred), wanted)
    return end.EndQuorumEpochRequest(CLUSTER, [end.RequestTopicData(METADATA_TOPIC, [partition])])


def fetch_request(
    replica: int, epoch: int, offset: int, last_epoch: int, *, max_wait_ms: int = 500, high_watermark: int = -1
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        0, epoch, offset, last_epoch, -1, 0, disk(replica) if replica >= 0 else bytes(16), high_watermark
    )
    return fetch.FetchRequest(
        CLUSTER,
        replica_state=fetch.ReplicaState(replica),
        max_wait_ms=max_wait_ms,
        max_bytes=1 << 20,
        topics=[fetch.FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def fetch_answer(
    leader: int, epoch: int, records: bytes = b"", *, high_watermark: int = -1, **fields: Any
) -> fetch.FetchResponse:
    partition = fetch.PartitionData(
        high_watermark=high_watermark, current_leader=fetch.LeaderIdAndEpoch(leader, epoch), records=records, **fields
    )
    where = at(leader)
    return fetch.FetchResponse(
        responses=[fetch.FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
        node_endpoints=[fetch.NodeEndpoint(leader, where.host, where.port)],
    )


def snapshot_request(replica: int, epoch: int, snapshot: tuple[int, int], position: int) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.RequestPartitionSnapshot(
        0, epoch, fetch_snapshot.RequestSnapshotId(*snapshot), position, disk(replica)
    )
    return fetch_snapshot.FetchSnapshotRequest(
        CLUSTER, replica, 1 << 20, [fetch_snapshot.RequestTopicSnapshot(METADATA_TOPIC, [partition])]
    )


def only(message: Any) -> Any:
    """The partition of an answer."""
    topics = message.responses if hasattr(message, "responses") else message.topics
    return topics[0].partitions[0]
