"""Which permission each request of a client needs, and the error without it: for every handler of records, groups and
transactions, at its first and last version."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.unit.broker.allowing import Permission
from tests.unit.broker.apis.guarded import Guarded, errors, guarded
from tests.unit.broker.apis.transactional import init
from tests.unit.replication.world import batch
from tidelog.broker.operations import NOT_ASKED, bits
from tidelog.broker.table import BROKER_APIS
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ZERO_UUID
from tidelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest
from tidelog.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest
from tidelog.protocol.messages.describe_producers import TopicRequest as DescribedTopic
from tidelog.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tidelog.protocol.messages.end_txn import EndTxnRequest
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest
from tidelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.protocol.messages.list_groups import ListGroupsRequest
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.list_transactions import ListTransactionsRequest
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tidelog.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from tidelog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tidelog.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.protocol.messages.sync_group import SyncGroupRequest
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tidelog.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tidelog.replication.partition import Partition

Op = AclOperation
TOPIC, GROUP, CLUSTER, TXN = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
PRODUCE_BY_ID, FETCH_BY_ID, COMMIT_BY_ID, OFFSET_FETCH_BY_ID, TXN_COMMIT_BY_ID = 13, 13, 10, 10, 6
CLUSTER_ACTION: Permission = (Op.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)


def of_topic(operation: AclOperation, name: str = "t") -> Permission:
    return operation, TOPIC, name


def of_group(operation: AclOperation, name: str = "g") -> Permission:
    return operation, GROUP, name


def of_txn(operation: AclOperation, name: str = "x") -> Permission:
    return operation, TXN, name


class World:
    """Topics ``t`` and ``u`` with a record each, group ``g`` with offsets of both, transactional id ``x`` with a producer."""

    def __init__(self, running: Guarded) -> None:
        self.running = running
        for name in ("t", "u"):
            running.broker.create_topic(name)
            running.broker.produce(name, "a")
        self.producer: Producer = init(running.talk, "x")
        assert not errors(running.freely(self.commit(9), 9))

    def id(self, topic: str) -> bytes:
        """The id of a topic; an unknown one has an id that no topic has."""
        image = self.running.node.image.topics.by_name.get(topic)
        return b"?" * 16 if image is None else image.id

    def named(self, topic: str, by_id: bool) -> dict[str, Any]:
        """How a request at a version with or without topic ids names a topic."""
        return {"topic_id": self.id(topic)} if by_id else {"name": topic}

    # -- records

    def produce(self, version: int, *topics: str, acks: int = 1, transactional: str | None = "") -> ProduceRequest:
        """One batch for each topic. ``transactional``: the request's id for transactional batches; "" for plain ones."""
        options: dict[str, Any] = {}
        if transactional != "":
            options = {"producer_id": self.producer.producer_id, "producer_epoch": self.producer.epoch, "base_sequence": 0}
            options["transactional"] = True
        return ProduceRequest(
            transactional_id=transactional or None,
            acks=acks,
            timeout_ms=1_000,
            topic_data=[
                TopicProduceData(
                    **self.named(name, version >= PRODUCE_BY_ID),
                    partition_data=[PartitionProduceData(index=0, records=bytes(batch(b"v", **options)))],
                )
                for name in topics or ("t",)
            ],
        )

    def fetch(self, version: int, *topics: str, replica: int = -1, session: int = 0, epoch: int = -1) -> FetchRequest:
        """From the start, without waiting."""
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=session, session_epoch=epoch)
        if version >= 15:
            request.replica_state = ReplicaState(replica_id=replica)
        else:
            request.replica_id = replica
        for name in topics:
            named = {"topic_id": self.id(name)} if version >= FETCH_BY_ID else {"topic": name}
            partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
            request.topics.append(FetchTopic(**named, partitions=[partition]))
        return request

    def end(self, topic: str) -> int:
        """The next offset of a topic."""
        partition = self.running.node.replicas.by_name(topic, 0)
        assert isinstance(partition, Partition) and partition.log is not None
        return partition.log.log_end_offset

    # -- groups

    def commit(self, version: int, *topics: str) -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        return OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(**self.named(name, version >= COMMIT_BY_ID), partitions=[partition])
                for name in topics or ("t", "u")
            ],
        )

    def committed(self, version: int, *topics: str, every: bool = False) -> OffsetFetchRequest:
        """``every``: without naming topics."""
        if version < 8:
            old = [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in topics or ("t",)]
            return OffsetFetchRequest(group_id="g", topics=None if every else old)
        wanted = [
            OffsetFetchRequestTopics(**self.named(name, version >= OFFSET_FETCH_BY_ID), partition_indexes=[0])
            for name in topics or ("t",)
        ]
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None if every else wanted)])

    def delete_offsets(self, *topics: str) -> OffsetDeleteRequest:
        partitions = [OffsetDeleteRequestPartition(partition_index=0)]
        return OffsetDeleteRequest(
            group_id="g", topics=[OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in topics]
        )

    # -- transactions

    def add_partitions(self, *topics: str) -> AddPartitionsToTxnRequest:
        """As clients send it."""
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics],
        )

    def verify_partitions(self) -> AddPartitionsToTxnRequest:
        """As brokers send it."""
        asked = AddPartitionsToTxnTransaction(
            transactional_id="x",
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            verify_only=True,
            topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        return AddPartitionsToTxnRequest(transactions=[asked])

    def commit_in_txn(self, version: int, *topics: str) -> TxnOffsetCommitRequest:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        return TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(**self.named(name, version >= TXN_COMMIT_BY_ID), partitions=[partition])
                for name in topics
            ],
        )

    def marker(self) -> WriteTxnMarkersRequest:
        topics = [WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
        return WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=4_000, producer_epoch=0, topics=topics)])


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with guarded() as running:
        yield World(running)


@dataclass(frozen=True)
class Case:
    """A request, the permissions that it needs, and the error without each. ``tolerates``: errors with all permissions that have
    nothing to do with them."""

    make: Callable[[World, int], Any]
    needs: Mapping[Permission, E]
    tolerates: frozenset[E] = frozenset()
    last: int | None = None
    first: int | None = None


def _list_offsets(world: World, version: int) -> Any:
    topic = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    return ListOffsetsRequest(replica_id=-1, topics=[topic])


def _epochs(world: World, version: int) -> Any:
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic="t", partitions=[partition])])


def _delete_records(world: World, version: int) -> Any:
    partition = DeleteRecordsPartition(partition_index=0, offset=0)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=100)


def _find(world: World, version: int, key: str = "g", kind: int = 0) -> Any:
    if version < 4:
        return FindCoordinatorRequest(key=key, key_type=kind)
    return FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)


def _join(world: World, version: int) -> Any:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    return JoinGroupRequest(
        group_id="g", session_timeout_ms=10, rebalance_timeout_ms=10, member_id="m", protocol_type="c", protocols=protocols
    )


def _sync(world: World, version: int) -> Any:
    return SyncGroupRequest(group_id="g", generation_id=1, member_id="m", protocol_type="c", protocol_name="range")


def _leave(world: World, version: int) -> Any:
    if version < 3:
        return LeaveGroupRequest(group_id="g", member_id="m")
    return LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])


def _beat(world: World, version: int, *topics: str, member: str = "m") -> Any:
    return ConsumerGroupHeartbeatRequest(
        group_id="k",
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=9_000,
        subscribed_topic_names=list(topics or ("t",)),
        topic_partitions=[],
    )


def _init(world: World, version: int) -> Any:
    return InitProducerIdRequest(
        transactional_id="y", transaction_timeout_ms=1_000, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


def _in_txn(cls: Any) -> Callable[[World, int], Any]:
    def make(world: World, version: int) -> Any:
        more = {"group_id": "g"} if cls is AddOffsetsToTxnRequest else {"committed": False}
        return cls(transactional_id="x", producer_id=world.producer.producer_id, producer_epoch=world.producer.epoch, **more)

    return make


TOPIC_DENIED, GROUP_DENIED = E.TOPIC_AUTHORIZATION_FAILED, E.GROUP_AUTHORIZATION_FAILED
TXN_DENIED, CLUSTER_DENIED = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.CLUSTER_AUTHORIZATION_FAILED
UNKNOWN_MEMBER = frozenset({E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.INVALID_SESSION_TIMEOUT})
NOT_OPEN = frozenset({E.INVALID_TXN_STATE, E.TRANSACTION_ABORTABLE, E.CONCURRENT_TRANSACTIONS, E.NOT_ENOUGH_REPLICAS})

CASES: dict[str, Case] = {
    "Produce": Case(lambda world, version: world.produce(version), {of_topic(Op.WRITE): TOPIC_DENIED}),
    "Produce in a transaction": Case(
        lambda world, version: world.produce(version, transactional="x"),
        {of_txn(Op.WRITE): TXN_DENIED, of_topic(Op.WRITE): TOPIC_DENIED},
        NOT_OPEN | {E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.INVALID_PRODUCER_EPOCH},
    ),
    "Fetch": Case(lambda world, version: world.fetch(version, "t"), {of_topic(Op.READ): TOPIC_DENIED}),
    "Fetch of a follower": Case(
        lambda world, version: world.fetch(version, "t", replica=1),
        {CLUSTER_ACTION: TOPIC_DENIED},
        frozenset({E.UNKNOWN_LEADER_EPOCH, E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION}),
    ),
    "ListOffsets": Case(_list_offsets, {of_topic(Op.DESCRIBE): TOPIC_DENIED}),
    "OffsetForLeaderEpoch": Case(_epochs, {of_topic(Op.DESCRIBE): TOPIC_DENIED}),
    "DeleteRecords": Case(_delete_records, {of_topic(Op.DELETE): TOPIC_DENIED}),
    "DescribeProducers": Case(
        lambda world, _: DescribeProducersRequest(topics=[DescribedTopic(name="t", partition_indexes=[0])]),
        {of_topic(Op.READ): TOPIC_DENIED},
    ),
    "FindCoordinator": Case(_find, {of_group(Op.DESCRIBE): GROUP_DENIED}),
    "FindCoordinator of a transactional id": Case(
        lambda world, version: _find(world, version, "x", 1), {of_txn(Op.DESCRIBE): TXN_DENIED}, first=1
    ),
    "FindCoordinator of a share group": Case(
        lambda world, version: _find(world, version, "g:AAAAAAAAAAAAAAAAAAAAAQ:0", 2),
        {CLUSTER_ACTION: CLUSTER_DENIED},
        frozenset({E.COORDINATOR_NOT_AVAILABLE}),
        first=6,
    ),
    "JoinGroup": Case(_join, {of_group(Op.READ): GROUP_DENIED}, UNKNOWN_MEMBER),
    "SyncGroup": Case(_sync, {of_group(Op.READ): GROUP_DENIED}, UNKNOWN_MEMBER),
    "Heartbeat": Case(
        lambda world, _: HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
        {of_group(Op.READ): GROUP_DENIED},
        UNKNOWN_MEMBER,
    ),
    "LeaveGroup": Case(_leave, {of_group(Op.READ): GROUP_DENIED}, UNKNOWN_MEMBER),
    "OffsetCommit": Case(
        lambda world, version: world.commit(version, "t"), {of_group(Op.READ): GROUP_DENIED, of_topic(Op.READ): TOPIC_DENIED}
    ),
    "OffsetFetch": Case(
        lambda world, version: world.committed(version),
        {of_group(Op.DESCRIBE): GROUP_DENIED, of_topic(Op.DESCRIBE): TOPIC_DENIED},
    ),
    "OffsetDelete": Case(
        lambda world, _: world.delete_offsets("t"), {of_group(Op.DELETE): GROUP_DENIED, of_topic(Op.READ): TOPIC_DENIED}
    ),
    "DeleteGroups": Case(
        lambda *_: DeleteGroupsRequest(groups_names=["none"]),
        {of_group(Op.DELETE, "none"): GROUP_DENIED},
        frozenset({E.GROUP_ID_NOT_FOUND}),
    ),
    "DescribeGroups": Case(lambda *_: DescribeGroupsRequest(groups=["g"]), {of_group(Op.DESCRIBE): GROUP_DENIED}),
    "ConsumerGroupHeartbeat": Case(
        _beat,
        {of_group(Op.READ, "k"): GROUP_DENIED, of_topic(Op.DESCRIBE): TOPIC_DENIED},
    ),
    "ConsumerGroupDescribe": Case(
        lambda *_: ConsumerGroupDescribeRequest(group_ids=["none"]),
        {of_group(Op.DESCRIBE, "none"): GROUP_DENIED},
        frozenset({E.GROUP_ID_NOT_FOUND}),
    ),
    "InitProducerId": Case(_init, {of_txn(Op.WRITE, "y"): TXN_DENIED}),
    "InitProducerId, idempotent": Case(
        lambda world, version: _init(world, version).replace(transactional_id=None),
        {(Op.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME): CLUSTER_DENIED},
    ),
    "AddPartitionsToTxn": Case(
        lambda world, _: world.add_partitions("t"),
        {of_txn(Op.WRITE): TXN_DENIED, of_topic(Op.WRITE): TOPIC_DENIED},
        NOT_OPEN,
        last=3,
    ),
    "AddPartitionsToTxn of a broker": Case(
        lambda world, _: world.verify_partitions(), {CLUSTER_ACTION: CLUSTER_DENIED}, NOT_OPEN, first=4
    ),
    "AddOffsetsToTxn": Case(
        _in_txn(AddOffsetsToTxnRequest), {of_txn(Op.WRITE): TXN_DENIED, of_group(Op.READ): GROUP_DENIED}, NOT_OPEN
    ),
    "EndTxn": Case(_in_txn(EndTxnRequest), {of_txn(Op.WRITE): TXN_DENIED}, NOT_OPEN | {E.PRODUCER_FENCED}),
    "TxnOffsetCommit": Case(
        lambda world, version: world.commit_in_txn(version, "t"),
        {of_txn(Op.WRITE): TXN_DENIED, of_group(Op.READ): GROUP_DENIED, of_topic(Op.READ): TOPIC_DENIED},
        NOT_OPEN | {E.INVALID_PRODUCER_EPOCH},
    ),
    "WriteTxnMarkers": Case(lambda world, _: world.marker(), {CLUSTER_ACTION: CLUSTER_DENIED}),
    "DescribeTransactions": Case(
        lambda *_: DescribeTransactionsRequest(transactional_ids=["x"]), {of_txn(Op.DESCRIBE): TXN_DENIED}
    ),
}


def versions(case: Case, key: int) -> set[int]:
    first, last = BROKER_APIS[key].api.versions
    return {first if case.first is None else case.first, last if case.last is None else case.last}


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_refused_without_each_of_the_permissions_that_it_needs(world: World, name: str) -> None:
    case = CASES[name]
    for version in versions(case, case.make(world, 0).API_KEY):
        for missing, error in case.needs.items():
            others = [each for each in case.needs if each != missing]
            answer = world.running.ask(case.make(world, version), version, *others)
            assert set(errors(answer)) == {error}, (version, missing)


@pytest.mark.parametrize("name", CASES)
def test_a_request_with_exactly_these_permissions_is_not_refused(world: World, name: str) -> None:
    case = CASES[name]
    for version in versions(case, case.make(world, 0).API_KEY):
        answer = world.running.ask(case.make(world, version), version, *case.needs)
        assert set(errors(answer)) <= case.tolerates, version


# -- either of two permissions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("permission", [CLUSTER_ACTION, (Op.ALTER, CLUSTER, CLUSTER_NAME)])
def test_markers_need_one_of_two_permissions(world: World, permission: Permission) -> None:
    assert not errors(world.running.ask(world.marker(), 1, permission))
    assert world.running.access.loud == ([CLUSTER_ACTION] if permission == CLUSTER_ACTION else [])


def test_a_broker_may_ask_for_the_epochs_of_any_topic(world: World) -> None:
    assert not errors(world.running.ask(_epochs(world, 4), 4, CLUSTER_ACTION))
    assert not errors(world.running.ask(_epochs(world, 4), 4, of_topic(Op.DESCRIBE)))
    assert world.running.access.loud == [of_topic(Op.DESCRIBE)]


def test_an_idempotent_producer_may_write_to_some_topic(world: World) -> None:
    request = _init(world, 5).replace(transactional_id=None)
    assert not errors(world.running.ask(request, 5, of_topic(Op.WRITE, "any")))
    assert errors(world.running.ask(request, 5, of_topic(Op.READ, "any"))) == [E.CLUSTER_AUTHORIZATION_FAILED]


# -- permissions come before existence and before validation -----------------------------------------------------------------


def test_a_topic_that_does_not_exist_is_refused_like_one_that_does(world: World) -> None:
    ask = world.running.ask
    assert errors(ask(world.produce(12, "none"), 12)) == [TOPIC_DENIED]
    assert errors(ask(world.fetch(12, "none"), 12)) == [TOPIC_DENIED]
    assert errors(ask(world.commit(9, "none"), 9, of_group(Op.READ))) == [TOPIC_DENIED]
    assert errors(ask(world.committed(9, "none"), 9, of_group(Op.DESCRIBE))) == [TOPIC_DENIED]
    assert errors(ask(world.delete_offsets("none"), 0, of_group(Op.DELETE))) == [TOPIC_DENIED]
    assert errors(ask(world.commit_in_txn(5, "none"), 5, of_group(Op.READ), of_txn(Op.WRITE))) == [TOPIC_DENIED]
    described = DescribeProducersRequest(topics=[DescribedTopic(name="none", partition_indexes=[0])])
    assert errors(ask(described, 0)) == [TOPIC_DENIED]


def test_an_unknown_topic_id_has_no_name_to_ask_for(world: World) -> None:
    ask = world.running.ask
    assert errors(ask(world.produce(13, "none"), 13)) == [E.UNKNOWN_TOPIC_ID]
    assert errors(ask(world.fetch(13, "none"), 13)) == [E.UNKNOWN_TOPIC_ID]
    assert errors(ask(world.fetch(13, "none", replica=2), 13)) == [TOPIC_DENIED]
    assert errors(ask(world.commit(10, "none"), 10, of_group(Op.READ))) == [E.UNKNOWN_TOPIC_ID]
    assert world.running.access.loud == [of_group(Op.READ)]
    assert errors(ask(world.committed(10, "none"), 10, of_group(Op.DESCRIBE))) == [E.UNKNOWN_TOPIC_ID]
    assert world.running.access.loud == [of_group(Op.DESCRIBE)]


def test_what_makes_no_sense_is_refused_for_the_permission_first(world: World) -> None:
    ask = world.running.ask
    assert errors(ask(world.produce(13, acks=7), 13)) == [TOPIC_DENIED]
    assert errors(ask(_init(world, 5).replace(producer_epoch=4), 5)) == [TXN_DENIED]
    assert errors(ask(ConsumerGroupHeartbeatRequest(group_id="g", member_epoch=0), 1)) == [GROUP_DENIED]
    assert errors(ask(DescribeTransactionsRequest(transactional_ids=[""]), 0)) == [TXN_DENIED]
    unnamed = DescribeProducersRequest(topics=[DescribedTopic(name="no/name", partition_indexes=[0])])
    assert errors(ask(unnamed, 0)) == [E.INVALID_TOPIC_EXCEPTION]
    assert errors(ask(_sync(world, 5).replace(protocol_name=None), 5)) == [E.INCONSISTENT_GROUP_PROTOCOL]


# -- requests with more than one resource ------------------------------------------------------------------------------------


def by_topic(answer: Any) -> dict[str, list[int]]:
    """The errors of each topic, by name."""
    topics = next(getattr(answer, name) for name in ("responses", "topics") if hasattr(answer, name))
    return {getattr(topic, "name", "") or getattr(topic, "topic", ""): errors(topic) for topic in topics}


@pytest.mark.parametrize("version", [3, 9, 12])
def test_the_batches_of_other_topics_are_written(world: World, version: int) -> None:
    before = len(world.running.broker.messages("t"))
    answer = world.running.ask(world.produce(version, "t", "u", "none"), version, of_topic(Op.WRITE), of_topic(Op.WRITE, "none"))
    assert by_topic(answer) == {"t": [], "u": [TOPIC_DENIED], "none": [E.UNKNOWN_TOPIC_OR_PARTITION]}
    assert len(world.running.broker.messages("t")) == before + 1


@pytest.mark.parametrize("version", [4, 12])
def test_other_topics_are_read(world: World, version: int) -> None:
    answer = world.running.ask(world.fetch(version, "u", "t", "none"), version, of_topic(Op.READ))
    assert by_topic(answer) == {"u": [TOPIC_DENIED], "t": [], "none": [TOPIC_DENIED]}
    read = {topic.topic: topic.partitions[0] for topic in answer.responses}
    assert read["t"].records and not read["u"].records
    assert (read["u"].high_watermark, read["u"].last_stable_offset) == (-1, -1)


def test_other_offsets_are_committed_read_and_deleted(world: World) -> None:
    ask = world.running.ask
    assert by_topic(ask(world.commit(9, "t", "u"), 9, of_group(Op.READ), of_topic(Op.READ))) == {"t": [], "u": [TOPIC_DENIED]}
    found = ask(world.committed(9, "u", "t"), 9, of_group(Op.DESCRIBE), of_topic(Op.DESCRIBE)).groups[0]
    assert [(topic.name, topic.partitions[0].error_code, topic.partitions[0].committed_offset) for topic in found.topics] == [
        ("t", 0, 1),
        ("u", TOPIC_DENIED, -1),
    ]
    answer = ask(world.delete_offsets("t", "u"), 0, of_group(Op.DELETE), of_topic(Op.READ))
    assert by_topic(answer) == {"t": [], "u": [TOPIC_DENIED]}
    assert not errors(world.running.freely(world.commit(9), 9))


@pytest.mark.parametrize("version", [2, 7, 9, 10])
def test_all_offsets_of_a_group_are_those_of_visible_topics(world: World, version: int) -> None:
    answer = world.running.ask(world.committed(version, every=True), version, of_group(Op.DESCRIBE), of_topic(Op.DESCRIBE, "u"))
    (topic,) = answer.topics if version < 8 else answer.groups[0].topics
    assert (topic.name or topic.topic_id) == ("u" if version < 10 else world.id("u"))
    assert world.running.access.loud[-1][:2] == (Op.DESCRIBE, GROUP)


def test_a_refused_group_is_one_of_several(world: World) -> None:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in ("g", "h")])
    groups = world.running.ask(request, 9, of_group(Op.DESCRIBE, "h")).groups
    assert [(group.group_id, group.error_code) for group in groups] == [("g", GROUP_DENIED), ("h", 0)]


def test_a_transaction_gets_all_of_its_partitions_or_none(world: World) -> None:
    answer = world.running.ask(world.add_partitions("t", "u", "__consumer_offsets"), 3, of_txn(Op.WRITE), of_topic(Op.WRITE))
    assert {topic.name: errors(topic) for topic in answer.results_by_topic_v3_and_below} == {
        "t": [E.OPERATION_NOT_ATTEMPTED],
        "u": [TOPIC_DENIED],
        "__consumer_offsets": [TOPIC_DENIED],
    }
    assert of_topic(Op.WRITE, "__consumer_offsets") not in world.running.access.loud


def test_a_batch_with_the_transactional_bit_refuses_its_whole_request(world: World) -> None:
    """A request with a plain batch in front must not dodge the check (CVE-2018-17196)."""
    mixed = world.produce(13, "t")
    mixed.topic_data += world.produce(13, "u", transactional="x").topic_data
    for transactional_id in (None, "x"):
        answer = world.running.ask(
            mixed.replace(transactional_id=transactional_id), 13, of_topic(Op.WRITE), of_topic(Op.WRITE, "u")
        )
        assert errors(answer) == [TXN_DENIED, TXN_DENIED]
    one = world.produce(13, "t", transactional="x").replace(transactional_id=None)
    assert errors(world.running.ask(one, 13, of_topic(Op.WRITE))) == [TXN_DENIED]


# -- what is listed ----------------------------------------------------------------------------------------------------------


def test_groups_are_listed_that_the_client_may_describe(world: World) -> None:
    for group in ("g", "h"):
        world.running.freely(world.commit(9).replace(group_id=group), 9)
    ask = world.running.ask

    def listed(*permissions: Permission) -> set[str]:
        answer = ask(ListGroupsRequest(), 5, *permissions)
        assert not errors(answer)
        return {each.group_id for each in answer.groups} & {"g", "h"}

    assert listed() == set()
    assert listed(of_group(Op.DESCRIBE, "h")) == {"h"}
    assert listed((Op.DESCRIBE, CLUSTER, CLUSTER_NAME)) == {"g", "h"}
    assert world.running.access.loud == []


def test_transactions_are_listed_that_the_client_may_describe(world: World) -> None:
    init(world.running.talk, "z")
    ask = world.running.ask
    assert [each.transactional_id for each in ask(ListTransactionsRequest(), 2, of_txn(Op.DESCRIBE, "z")).transaction_states] == [
        "z"
    ]
    assert ask(ListTransactionsRequest(), 2).transaction_states == []


def test_a_described_transaction_has_the_topics_that_the_client_may_describe(world: World) -> None:
    producer = init(world.running.talk, "w")
    added = world.add_partitions("t", "u").replace(
        v3_and_below_transactional_id="w",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
    )
    assert not errors(world.running.freely(added, 3))
    request = DescribeTransactionsRequest(transactional_ids=["w"])
    (state,) = world.running.ask(request, 0, of_txn(Op.DESCRIBE, "w"), of_topic(Op.DESCRIBE, "u")).transaction_states
    assert (state.error_code, [topic.topic for topic in state.topics]) == (0, ["u"])


# -- authorized operations ---------------------------------------------------------------------------------------------------


def test_the_authorized_operations_of_a_group_are_answered_when_asked_for(world: World) -> None:
    ask = world.running.ask
    asked = DescribeGroupsRequest(groups=["none", "g", "h"], include_authorized_operations=True)
    permissions = (of_group(Op.DESCRIBE), of_group(Op.READ), of_group(Op.DESCRIBE, "none"))
    refused, none, found = ask(asked, 6, *permissions).groups
    assert (refused.group_id, refused.error_code, refused.authorized_operations) == ("h", GROUP_DENIED, NOT_ASKED)
    assert (none.error_code, none.authorized_operations) == (E.GROUP_ID_NOT_FOUND, NOT_ASKED)
    assert (found.error_code, found.authorized_operations) == (0, bits(Op.READ, Op.DESCRIBE))
    (unasked,) = ask(DescribeGroupsRequest(groups=["g"]), 6, *permissions).groups
    assert unasked.authorized_operations == NOT_ASKED


# -- the consumer protocol ---------------------------------------------------------------------------------------------------


def test_a_described_group_with_a_hidden_topic_is_refused_whole(world: World) -> None:
    ask, freely = world.running.ask, world.running.freely
    assert not errors(freely(_beat(world, 1, "t", "u").replace(group_id="d"), 1))
    request = ConsumerGroupDescribeRequest(group_ids=["e", "d"], include_authorized_operations=True)
    refused, hidden = ask(request, 1, of_group(Op.DESCRIBE, "d"), of_topic(Op.DESCRIBE)).groups
    assert (refused.group_id, refused.error_code, refused.authorized_operations) == ("e", GROUP_DENIED, NOT_ASKED)
    assert (hidden.group_id, hidden.error_code, hidden.members) == ("d", TOPIC_DENIED, [])
    _, seen = ask(request, 1, of_group(Op.DESCRIBE, "d"), of_topic(Op.DESCRIBE), of_topic(Op.DESCRIBE, "u")).groups
    assert (seen.error_code, len(seen.members), seen.authorized_operations) == (0, 1, bits(Op.DESCRIBE))


def resolved(world: World, group: str, pattern: str) -> frozenset[str]:
    """The topics that a group's pattern matches, once they are known."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        regexes = world.running.node.groups.find(group).machine.groups[group].regexes  # type: ignore[union-attr]
        if pattern in regexes:
            topics: frozenset[str] = regexes[pattern].topics
            return topics
        time.sleep(0.01)
    raise AssertionError("the pattern was not resolved in 10 s")


def test_a_pattern_matches_what_the_member_that_has_it_resolved_may_describe(world: World) -> None:
    talk, may_read = world.running.talk, of_group(Op.READ, "r")
    request = _beat(world, 1).replace(group_id="r", subscribed_topic_names=None, subscribed_topic_regex="t|u")
    with world.running.only(may_read, of_topic(Op.DESCRIBE, "u")):
        assert not errors(talk.ask(request, 1))
        assert resolved(world, "r", "t|u") == {"u"}
        assert world.running.access.loud == [may_read]
    with world.running.only(may_read, of_topic(Op.DESCRIBE), of_topic(Op.DESCRIBE, "u")):
        assert not errors(talk.ask(request.replace(member_id="n"), 1))
        assert resolved(world, "r", "t|u") == {"u"}


# -- fetch sessions, long polls, followers -----------------------------------------------------------------------------------


def test_a_session_obeys_each_change_with_its_next_fetch(world: World) -> None:
    ask = world.running.ask
    both = (of_topic(Op.READ), of_topic(Op.READ, "u"))
    first = ask(world.fetch(12, "t", "u", epoch=0), 12, *both)
    session = first.session_id
    assert session and by_topic(first) == {"t": [], "u": []}
    caught_up = world.fetch(12, "t", "u", session=session, epoch=1)
    for topic in caught_up.topics:
        topic.partitions[0].fetch_offset = world.end(topic.topic)
    assert by_topic(ask(caught_up, 12, *both)) == {}
    denied = ask(world.fetch(12, session=session, epoch=2), 12, of_topic(Op.READ))
    assert (denied.error_code, by_topic(denied)) == (0, {"u": [TOPIC_DENIED]})
    assert by_topic(ask(world.fetch(12, session=session, epoch=3), 12, of_topic(Op.READ))) == {"u": [TOPIC_DENIED]}
    world.running.broker.produce("u", "b")
    allowed = ask(world.fetch(12, session=session, epoch=4), 12, *both)
    assert by_topic(allowed) == {"u": []} and allowed.responses[0].partitions[0].records


def test_a_session_that_another_client_continues_is_decided_for_that_client(world: World) -> None:
    ask = world.running.ask
    created = ask(world.fetch(12, "t", epoch=0), 12, of_topic(Op.READ))
    caught_up = world.fetch(12, "t", session=created.session_id, epoch=1)
    caught_up.topics[0].partitions[0].fetch_offset = world.end("t")
    assert by_topic(ask(caught_up, 12, of_topic(Op.READ))) == {}
    denied = ask(world.fetch(12, session=created.session_id, epoch=2), 12)
    assert by_topic(denied) == {"t": [TOPIC_DENIED]}


def test_a_follower_without_permission_learns_nothing_and_has_no_session(world: World) -> None:
    answer = world.running.ask(world.fetch(18, "t", "none", replica=0, epoch=0), 18, of_topic(Op.READ))
    assert (errors(answer), answer.session_id) == ([TOPIC_DENIED, TOPIC_DENIED], 0)
    assert all(read.partitions[0].high_watermark == -1 for read in answer.responses)
    continued = world.running.ask(world.fetch(18, replica=0, session=7, epoch=1), 18)
    assert (continued.error_code, continued.responses) == (E.FETCH_SESSION_ID_NOT_FOUND, [])


def test_topics_are_hidden_by_name_and_by_id(world: World) -> None:
    for version in (12, 18):
        answer = world.running.ask(world.fetch(version, "t"), version)
        (topic,) = answer.responses
        assert (topic.topic, topic.topic_id) == (("t", ZERO_UUID) if version == 12 else ("", world.id("t")))
