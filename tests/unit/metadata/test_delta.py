from pathlib import Path
from typing import Any

import pytest

from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import EMPTY_IMAGE, ClusterImage, PartitionImage
from tidelog.metadata.records import MetadataLogError, MetadataRecord, decode_record, encode_record
from tidelog.metadata.snapshot import snapshot_records
from tidelog.model.acl import AccessControlEntry
from tidelog.protocol.messages.abort_transaction_record import AbortTransactionRecord
from tidelog.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from tidelog.protocol.messages.begin_transaction_record import BeginTransactionRecord
from tidelog.protocol.messages.clear_elr_record import ClearElrRecord
from tidelog.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.delegation_token_record import DelegationTokenRecord
from tidelog.protocol.messages.end_transaction_record import EndTransactionRecord
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.fence_broker_record import FenceBrokerRecord
from tidelog.protocol.messages.no_op_record import NoOpRecord
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord
from tidelog.protocol.messages.partition_record import PartitionRecord
from tidelog.protocol.messages.producer_ids_record import ProducerIdsRecord
from tidelog.protocol.messages.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from tidelog.protocol.messages.register_controller_record import RegisterControllerRecord
from tidelog.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from tidelog.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from tidelog.protocol.messages.remove_topic_record import RemoveTopicRecord
from tidelog.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from tidelog.protocol.messages.topic_record import TopicRecord
from tidelog.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.protocol.messages.zk_migration_state_record import ZkMigrationStateRecord
from tidelog.protocol.record_types import METADATA_RECORD_TYPES
from tidelog.protocol.registry import data_class
from tidelog.raft.snapshots import read_snapshot
from tidelog.server.disk import DiskFileSystem

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata"
TOPIC, OTHER = b"T" * 16, b"O" * 16
DIR = b"D" * 16


def replay(image: ClusterImage, *records: MetadataRecord) -> ClusterImage:
    delta = ClusterDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply(image.offset + len(records), 1, 1000)


def partition(number: int = 0, topic: bytes = TOPIC, **changes: object) -> PartitionRecord:
    fields: dict[str, object] = {
        "partition_id": number, "topic_id": topic, "replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 3,
        "partition_epoch": 5, "directories": [DIR, DIR],
    }  # fmt: skip
    return PartitionRecord(**{**fields, **changes})  # type: ignore[arg-type]


def with_topic() -> ClusterImage:
    return replay(EMPTY_IMAGE, TopicRecord(name="t", topic_id=TOPIC), partition(0), partition(1))


def broker(**changes: object) -> RegisterBrokerRecord:
    fields: dict[str, object] = {
        "broker_id": 1, "incarnation_id": b"I" * 16, "broker_epoch": 7, "fenced": True, "log_dirs": [DIR], "rack": "a",
        "end_points": [BrokerEndpoint(name="P", host="h", port=1, security_protocol=0)],
        "features": [BrokerFeature(name="f", min_supported_version=0, max_supported_version=2)],
    }  # fmt: skip
    return RegisterBrokerRecord(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_topic_appears_under_id_and_name_and_its_partitions_by_number() -> None:
    image = with_topic()
    topic = image.topics.by_name["t"]
    assert topic is image.topics.by_id[TOPIC]
    assert len(topic.partitions) == 2
    assert image.topics.partition("t", 1) == PartitionImage((1, 2), (1, 2), 1, 3, 5, directories=(DIR, DIR))
    assert image.topics.partition("t", 2) is None
    assert image.topics.partition("u", 0) is None


def test_the_image_below_a_delta_is_left_as_it_was() -> None:
    before = with_topic()
    after = replay(before, PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=2), TopicRecord(name="u", topic_id=OTHER))
    assert before.topics.by_id[TOPIC].partitions[0].leader == 1
    assert list(before.topics.by_name) == ["t"]
    assert after.topics.by_id[TOPIC].partitions[0].leader == 2
    assert after.topics.by_id[TOPIC].partitions[1] is before.topics.by_id[TOPIC].partitions[1]


def test_a_delta_that_touches_no_topic_shares_them_with_the_image_below() -> None:
    before = with_topic()
    after = replay(before, FeatureLevelRecord(name="f", feature_level=1))
    assert after.topics is before.topics
    assert after.brokers is before.brokers


def test_a_leader_in_a_change_raises_the_leader_epoch_even_when_it_is_the_same() -> None:
    after = (
        replay(with_topic(), PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=1)).topics.by_id[TOPIC].partitions[0]
    )
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 4, 6)


def test_a_change_without_a_leader_raises_the_partition_epoch_only() -> None:
    record = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[2], eligible_leader_replicas=[1], last_known_elr=[2])
    after = replay(with_topic(), record).topics.by_id[TOPIC].partitions[0]
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 3, 6)
    assert (after.isr, after.elr, after.last_known_elr, after.replicas) == ((2,), (1,), (2,), (1, 2))


def test_a_reassignment_replaces_replicas_and_directories() -> None:
    record = PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC, replicas=[2, 3], adding_replicas=[3], removing_replicas=[1], directories=[DIR, b"E" * 16],
        leader_recovery_state=1,
    )  # fmt: skip
    after = replay(with_topic(), record).topics.by_id[TOPIC].partitions[0]
    assert (after.replicas, after.adding_replicas, after.removing_replicas) == ((2, 3), (3,), (1,))
    assert after.directory(3) == b"E" * 16
    assert after.leader_recovery_state == 1


def test_partitions_from_before_directories_are_in_the_migrating_one() -> None:
    image = replay(EMPTY_IMAGE, TopicRecord(name="t", topic_id=TOPIC), partition(directories=[]))
    assert image.topics.by_id[TOPIC].partitions[0].directories == (bytes(16), bytes(16))


def test_partitions_may_come_in_any_order_but_without_a_gap() -> None:
    topic = TopicRecord(name="t", topic_id=TOPIC)
    assert len(replay(EMPTY_IMAGE, topic, partition(1), partition(0)).topics.by_id[TOPIC].partitions) == 2
    with pytest.raises(MetadataLogError, match=r"topic t has partitions \[0, 2\]"):
        replay(EMPTY_IMAGE, topic, partition(0), partition(2))


def test_a_deleted_topic_takes_its_settings_along_and_its_name_is_free_again() -> None:
    image = replay(with_topic(), ConfigRecord(resource_type=2, resource_name="t", name="a", value="1"))
    delta = ClusterDelta(image)
    for record in (RemoveTopicRecord(topic_id=TOPIC), TopicRecord(name="t", topic_id=OTHER), partition(0, OTHER)):
        delta.replay(record)
    after = delta.apply(9, 1, 0)
    assert list(delta.topics.deleted) == [TOPIC]
    assert after.topics.by_name["t"].id == OTHER
    assert TOPIC not in after.topics.by_id
    assert after.configs == {}


def test_a_topic_created_and_deleted_in_one_delta_was_never_there() -> None:
    delta = ClusterDelta(EMPTY_IMAGE)
    for record in (TopicRecord(name="t", topic_id=TOPIC), partition(0), RemoveTopicRecord(topic_id=TOPIC)):
        delta.replay(record)
    assert delta.topics.deleted == {}
    assert delta.topics.changed == {}
    assert delta.apply(2, 1, 0).topics.by_id == {}


def test_a_delta_says_which_partitions_of_which_topics_changed() -> None:
    delta = ClusterDelta(with_topic())
    delta.replay(PartitionChangeRecord(partition_id=1, topic_id=TOPIC, isr=[1]))
    change = delta.topics.changed[TOPIC]
    assert (change.created, change.changed) == (False, {1})
    assert delta.topics.partition(TOPIC, 1) == change.partitions[1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(name="t", topic_id=OTHER),
        TopicRecord(name="u", topic_id=TOPIC),
        RemoveTopicRecord(topic_id=OTHER),
        partition(0, OTHER),
        PartitionChangeRecord(partition_id=0, topic_id=OTHER),
        PartitionChangeRecord(partition_id=7, topic_id=TOPIC),
        partition(2, directories=[DIR]),
        ClearElrRecord(topic_name="u"),
        EndTransactionRecord(),
        AbortTransactionRecord(),
        RemoveAccessControlEntryRecord(id=OTHER),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=7),
        FenceBrokerRecord(id=1, epoch=7),
    ],
)
def test_a_record_that_does_not_fit_the_image_stops_the_replay(record: MetadataRecord) -> None:
    with pytest.raises(MetadataLogError):
        replay(with_topic(), record)


def test_clearing_elrs_takes_all_topics_or_one_and_leaves_epochs() -> None:
    elr = {"eligible_leader_replicas": [2], "last_known_elr": [1]}
    image = replay(
        EMPTY_IMAGE, TopicRecord(name="t", topic_id=TOPIC), partition(0, TOPIC, **elr),
        TopicRecord(name="u", topic_id=OTHER), partition(0, OTHER, **elr),
    )  # fmt: skip
    one = replay(image, ClearElrRecord(topic_name="u"))
    assert one.topics.by_name["t"].partitions[0].elr == (2,)
    assert one.topics.by_name["u"].partitions[0].elr == ()
    both = replay(image, ClearElrRecord(topic_name=""))
    assert [topic.partitions[0].last_known_elr for topic in both.topics.by_id.values()] == [(), ()]
    assert both.topics.by_name["t"].partitions[0].partition_epoch == 5


def test_records_of_a_transaction_count_only_from_its_end() -> None:
    delta = ClusterDelta(EMPTY_IMAGE)
    delta.replay(BeginTransactionRecord(name="x"))
    delta.replay(FeatureLevelRecord(name="f", feature_level=1))
    assert delta.transaction_open
    assert delta.apply(1, 1, 0).features == {}
    delta.replay(EndTransactionRecord())
    assert not delta.transaction_open
    assert delta.apply(2, 1, 0).features == {"f": 1}


def test_records_of_an_aborted_transaction_never_count() -> None:
    image = replay(
        EMPTY_IMAGE, BeginTransactionRecord(), FeatureLevelRecord(name="f", feature_level=1), AbortTransactionRecord(reason="r")
    )
    assert image.features == {}
    with pytest.raises(MetadataLogError, match="inside a transaction"):
        replay(EMPTY_IMAGE, BeginTransactionRecord(), BeginTransactionRecord())


def test_settings_are_set_and_unset_one_by_one() -> None:
    image = replay(
        EMPTY_IMAGE,
        ConfigRecord(resource_type=2, resource_name="t", name="a", value="1"),
        ConfigRecord(resource_type=2, resource_name="t", name="b", value="2"),
        ConfigRecord(resource_type=4, resource_name="", name="c", value="3"),
        ConfigRecord(resource_type=4, resource_name="5", name="c", value="4"),
    )
    assert image.topic_configs("t") == {"a": "1", "b": "2"}
    assert (image.cluster_configs, image.broker_configs(5), image.broker_configs(6)) == ({"c": "3"}, {"c": "4"}, {})
    delta = ClusterDelta(image)
    delta.replay(ConfigRecord(resource_type=2, resource_name="t", name="a", value=None))
    delta.replay(ConfigRecord(resource_type=4, resource_name="5", name="c", value=None))
    assert delta.config_changes() == {(2, "t"): {"b": "2"}, (4, "5"): {}}
    assert (4, "5") not in delta.apply(9, 1, 0).configs


@pytest.mark.parametrize("name", sorted(METADATA_RECORD_TYPES.values()))
def test_every_record_type_that_can_be_read_can_be_replayed(name: str) -> None:
    record: Any = data_class(name)()
    try:
        ClusterDelta(everything()).replay(record)
    except MetadataLogError as error:
        assert "is no record of a metadata log" not in str(error)


def test_a_feature_at_level_zero_is_none() -> None:
    image = replay(EMPTY_IMAGE, FeatureLevelRecord(name="f", feature_level=2))
    assert replay(image, FeatureLevelRecord(name="f", feature_level=0)).features == {}


def everything() -> ClusterImage:
    """An image with something of every kind."""
    quota = [EntityData(entity_type="user", entity_name=None), EntityData(entity_type="client-id", entity_name="c")]
    return replay(
        EMPTY_IMAGE,
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="a.version", feature_level=1),
        broker(),
        RegisterControllerRecord(controller_id=9, incarnation_id=OTHER),
        TopicRecord(name="t", topic_id=TOPIC),
        partition(0, eligible_leader_replicas=[2], last_known_elr=[1], leader_recovery_state=1),
        ConfigRecord(resource_type=2, resource_name="t", name="a", value="1"),
        ClientQuotaRecord(entity=quota, key="k", value=1.5),
        ClientQuotaRecord(entity=quota, key="l", value=2.5),
        ClientQuotaRecord(entity=quota, key="l", value=0.0, remove=True),
        ProducerIdsRecord(broker_id=1, broker_epoch=7, next_producer_id=4000),
        AccessControlEntryRecord(id=OTHER, resource_type=2, resource_name="t", pattern_type=3, principal="User:a", host="*",
                                 operation=3, permission_type=3),
        UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096),
        DelegationTokenRecord(owner="o", requester="r", renewers=["n"], issue_timestamp=1, max_timestamp=2,
                              expiration_timestamp=3, token_id="i"),
        NoOpRecord(),
        ZkMigrationStateRecord(zk_migration_state=0),
    )  # fmt: skip


def test_what_only_later_features_use_is_kept_all_the_same() -> None:
    image = everything()
    assert image.quotas == {(("client-id", "c"), ("user", None)): {"k": 1.5}}
    assert image.next_producer_id == 4000
    assert image.acls[OTHER] == AccessControlEntry(2, "t", 3, "User:a", "*", 3, 3)  # type: ignore[index]
    assert image.scram["u", 1].iterations == 4096
    assert image.tokens["i"].renewers == ("n",)
    assert image.controllers[9].incarnation_id == OTHER
    gone = replay(
        image,
        RemoveAccessControlEntryRecord(id=OTHER),
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
        RemoveDelegationTokenRecord(token_id="i"),
    )
    assert (gone.acls, gone.scram, gone.tokens) == ({}, {}, {})


def same_content(one: ClusterImage, other: ClusterImage) -> bool:
    fields = ("features", "brokers", "controllers", "topics", "configs", "quotas", "next_producer_id", "acls", "scram", "tokens")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def test_a_snapshot_makes_the_same_image_again() -> None:
    image = everything()
    records = [decode_record(encode_record(record, image.metadata_version)) for record in snapshot_records(image)]
    assert records[0].feature_level == 30  # type: ignore[attr-defined]
    assert same_content(replay(EMPTY_IMAGE, *records), image)


def test_a_snapshot_for_an_old_metadata_version_leaves_out_what_it_does_not_know() -> None:
    image = replay(everything(), FeatureLevelRecord(name="metadata.version", feature_level=14))
    records = [decode_record(encode_record(record, 14)) for record in snapshot_records(image)]
    again = replay(EMPTY_IMAGE, *records)
    assert again.controllers == {}
    assert again.topics.by_id[TOPIC].partitions[0].directories == (bytes(16), bytes(16))
    assert again.brokers[1].directories == ()


def test_a_snapshot_that_kafka_wrote_is_written_back_with_the_same_records() -> None:
    snapshot = read_snapshot(DiskFileSystem(), str(GOLDEN / "00000000000000003599-0000000002.checkpoint"))
    image = replay(EMPTY_IMAGE, *snapshot.records)
    theirs = [encode_record(record, 30) for record in snapshot.records]
    ours = [encode_record(record, 30) for record in snapshot_records(image)]
    assert sorted(ours) == sorted(theirs)
    assert ours[0] == theirs[0]
