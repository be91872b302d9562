from collections.abc import Callable
from typing import Any

import pytest

from tidelog.controller.broker_lifecycle import GIVEN_AWAY_AT_ONCE
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages import assign_replicas_to_dirs as messages
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.messages.broker_registration import Feature
from tidelog.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest


def create(cluster: Any, name: str, *assignments: list[int]) -> None:
    wanted = [CreatableReplicaAssignment(partition_index=n, broker_ids=ids) for n, ids in enumerate(assignments)]
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=wanted)]
    )
    assert cluster.ask(QuorumController.create_topics, request).topics[0].error_code == 0


def isrs(cluster: Any, topic: str) -> list[tuple[int, ...]]:
    return [each.isr for each in cluster.image.topics.by_name[topic].partitions]


def test_a_broker_is_registered_fenced_and_its_epoch_is_the_offset_of_the_record(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    offset = cluster.controller.next_offset
    assert cluster.register(5, rack="r") == offset
    broker = cluster.image.brokers[5]
    assert (broker.epoch, broker.fenced, broker.rack, broker.endpoints["PLAINTEXT"].port) == (offset, True, "r", 9092)
    assert cluster.register(5) == offset, "the same process asking again keeps its epoch"
    assert cluster.register(5, incarnation=1) > offset, "the first process was never heard of again"


def test_a_broker_of_another_cluster_is_refused(make_cluster: Callable[..., Any]) -> None:
    with pytest.raises(KafkaError) as caught:
        make_cluster().register(1, cluster_id="other")
    assert caught.value.code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_broker_that_cannot_do_a_finalized_level_is_refused(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    too_old = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=29)]
    with pytest.raises(KafkaError, match=r"runs metadata\.version") as caught:
        cluster.register(1, features=too_old)
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION
    cluster.controller.replay([FeatureLevelRecord(name="x.version", feature_level=1)], cluster.controller.next_offset, 1, 0)
    with pytest.raises(KafkaError, match=r"the broker knows 0 to 0"):
        cluster.register(1)


def test_a_broker_is_unfenced_once_it_has_applied_its_registration(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    epoch = cluster.register(1)
    behind = cluster.heartbeat(1, current_metadata_offset=epoch - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    waiting = cluster.heartbeat(1, want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    ready = cluster.heartbeat(1)
    assert (ready.is_caught_up, ready.is_fenced) == (True, False)
    assert [(r.NAME, r.fenced) for r in cluster.records] == [("BrokerRegistrationChangeRecord", -1)]
    assert cluster.image.brokers[1].active
    cluster.heartbeat(1)
    assert cluster.records == []


def test_a_heartbeat_of_an_old_process_is_stale(cluster: Any) -> None:
    for broker_id, epoch in ((1, cluster.image.brokers[1].epoch - 1), (7, 0)):
        with pytest.raises(KafkaError) as caught:
            cluster.ask(
                QuorumController.broker_heartbeat,
                BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=99),
            )
        assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_fencing_moves_leaderships_and_leaves_the_last_in_sync_replica_where_it_is(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2], [2, 1])
    create(cluster, "u", [1])
    assert cluster.heartbeat(1, want_fence=True).is_fenced
    assert (cluster.leaders("t"), cluster.leaders("u")) == ([(2, 1), (2, 0)], [(-1, 1)])
    assert (isrs(cluster, "t"), isrs(cluster, "u")) == ([(2,), (2,)], [(1,)])
    cluster.heartbeat(1)
    assert (cluster.leaders("t"), cluster.leaders("u")) == ([(2, 1), (2, 0)], [(1, 2)])
    assert (isrs(cluster, "t"), isrs(cluster, "u")) == ([(2,), (2,)], [(1,)])


def test_a_broker_shuts_down_in_order_and_comes_back_in_a_new_epoch(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1)
    create(cluster, "t", [1], [1])
    response = cluster.heartbeat(1, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (False, False)
    assert [record.NAME for record in cluster.records] == [
        "BrokerRegistrationChangeRecord", "PartitionChangeRecord", "PartitionChangeRecord",
    ]  # fmt: skip
    assert cluster.records[0].in_controlled_shutdown == 1
    assert cluster.leaders("t") == [(-1, 1), (-1, 1)]
    response = cluster.heartbeat(1, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (True, True)
    assert [(record.NAME, record.fenced) for record in cluster.records] == [("BrokerRegistrationChangeRecord", 1)]
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.records == []
    cluster.register(1, incarnation=1)
    cluster.heartbeat(1)
    assert cluster.leaders("t") == [(1, 2), (1, 2)]


def test_a_broker_with_many_leaderships_gives_them_away_in_steps_and_stops_when_all_have_heard_of_the_last(
    make_cluster: Callable[..., Any],
) -> None:
    cluster = make_cluster(1, 2)
    count = 2 * GIVEN_AWAY_AT_ONCE + 50
    create(cluster, "t", *[[1, 2]] * count)
    left = []
    while cluster.controller.partitions.leads(1):
        assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
        left.append(cluster.controller.partitions.leads(1))
    assert left == [count - GIVEN_AWAY_AT_ONCE, count - 2 * GIVEN_AWAY_AT_ONCE, 0]
    assert set(isrs(cluster, "t")) == {(2,)}
    last = cluster.image.offset
    cluster.heartbeat(2, current_metadata_offset=last - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down, "broker 2 does not know of the last step"
    cluster.heartbeat(2, current_metadata_offset=last)
    response = cluster.heartbeat(1, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (True, True)
    assert [record.NAME for record in cluster.records] == ["BrokerRegistrationChangeRecord"]


def test_a_broker_that_follows_many_partitions_leaves_their_isrs_in_steps_too(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", *[[2, 1]] * (GIVEN_AWAY_AT_ONCE + 1))
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert len(cluster.records) == GIVEN_AWAY_AT_ONCE + 1
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert len(cluster.records) == 1
    cluster.heartbeat(2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_process_that_died_loses_its_leaderships_when_the_next_one_registers(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", [1], [2])
    create(cluster, "u", [1, 2])
    with pytest.raises(KafkaError) as caught:
        cluster.register(1, incarnation=1)
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.silence(1)
    epoch = cluster.controller.next_offset
    assert cluster.register(1, incarnation=1) == epoch
    assert [record.NAME for record in cluster.records] == ["RegisterBrokerRecord"]
    assert (cluster.leaders("t"), cluster.leaders("u")) == ([(-1, 1), (2, 0)], [(2, 1)])
    cluster.heartbeat(1)
    assert (cluster.leaders("t"), cluster.leaders("u")) == ([(1, 2), (2, 0)], [(2, 1)])


def test_an_unclean_election_happens_only_where_it_is_allowed(make_cluster: Callable[..., Any]) -> None:
    for allowed, leader in ((False, -1), (True, 2)):
        cluster = make_cluster(1, 2, unclean_leader_election_enable=allowed)
        create(cluster, "t", [1, 2])
        cluster.heartbeat(2, want_fence=True)
        cluster.heartbeat(1, want_fence=True)
        assert cluster.leaders("t")[0][0] == -1
        cluster.heartbeat(2)
        assert cluster.leaders("t")[0][0] == leader


def test_directories_that_failed_leave_the_registration_and_lead_no_more(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    cluster.register(1, directories=2)
    cluster.heartbeat(1)
    create(cluster, "t", [1], [1])
    good, failed = cluster.image.brokers[1].directories
    assign(cluster, good, "t", 0)
    assign(cluster, failed, "t", 1)
    response = cluster.heartbeat(1, offline_log_dirs=[failed])
    assert not response.is_fenced
    assert cluster.image.brokers[1].directories == (good,)
    assert cluster.leaders("t") == [(1, 0), (-1, 1)]
    cluster.heartbeat(1, offline_log_dirs=[failed])
    assert cluster.records == []


def test_a_broker_that_is_to_be_unfenced_and_names_a_failed_directory_does_not_lead_from_it(
    make_cluster: Callable[..., Any],
) -> None:
    """The disk that hung and had its broker fenced fails at last."""
    cluster = make_cluster(2)
    cluster.register(1, directories=2)
    cluster.heartbeat(1)
    create(cluster, "t", [1, 2], [1, 2])
    good, failed = cluster.image.brokers[1].directories
    assign(cluster, good, "t", 0)
    assign(cluster, failed, "t", 1)
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1, want_fence=True)
    assert [leader for leader, _ in cluster.leaders("t")] == [-1, -1]
    cluster.heartbeat(1, offline_log_dirs=[failed])
    assert cluster.image.brokers[1].directories == (good,)
    assert not cluster.heartbeat(1, offline_log_dirs=[failed]).is_fenced
    assert [leader for leader, _ in cluster.leaders("t")] == [1, -1]


def assign(cluster: Any, directory: bytes, topic: str, *numbers: int) -> Any:
    partitions = [messages.RequestPartitionData(partition_index=number) for number in numbers]
    image = cluster.image.topics.by_name.get(topic)
    topics = [messages.RequestTopicData(topic_id=image.id if image else b"u" * 16, partitions=partitions)]
    request = messages.AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=cluster.image.brokers[1].epoch,
        directories=[messages.RequestDirectoryData(id=directory, topics=topics)],
    )
    response = cluster.ask(QuorumController.assign_replicas_to_dirs, request)
    return [each.error_code for each in response.directories[0].topics[0].partitions]


def test_a_broker_says_where_its_replicas_are(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(2)
    cluster.register(1, directories=2)
    cluster.heartbeat(1)
    create(cluster, "t", [1, 2])
    create(cluster, "u", [2])
    directory = cluster.image.brokers[1].directories[1]
    assert assign(cluster, directory, "u", 0) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert assign(cluster, directory, "t", 0, 1) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    partition = cluster.image.topics.by_name["t"].partitions[0]
    assert (partition.directory(1), partition.directory(2)) == (directory, cluster.image.brokers[2].directories[0])
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 1)
    assert assign(cluster, directory, "t", 0) == [0]
    assert cluster.records == []
    assert assign(cluster, directory, "unknown", 0) == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_an_unregistered_broker_leads_nothing_and_is_gone(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2])
    cluster.ask(QuorumController.unregister_broker, UnregisterBrokerRequest(broker_id=1))
    assert list(cluster.image.brokers) == [2]
    assert cluster.leaders("t") == [(2, 1)]
    with pytest.raises(KafkaError) as caught:
        cluster.ask(QuorumController.unregister_broker, UnregisterBrokerRequest(broker_id=1))
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED
