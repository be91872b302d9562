"""Numbers of records against what Kafka's log formats are known to hold."""

from __future__ import annotations

from tidelog.protocol import registry
from tidelog.protocol.record_types import (
    DATA_MODULES,
    GROUP_RECORD_TYPES,
    METADATA_RECORD_TYPES,
    SHARE_RECORD_TYPES,
    TRANSACTION_RECORD_TYPES,
)


def test_metadata_records_have_the_numbers_of_the_log() -> None:
    known = {
        0: "RegisterBrokerRecord",
        2: "TopicRecord",
        3: "PartitionRecord",
        4: "ConfigRecord",
        5: "PartitionChangeRecord",
        9: "RemoveTopicRecord",
        12: "FeatureLevelRecord",
        15: "ProducerIdsRecord",
        17: "BrokerRegistrationChangeRecord",
        20: "NoOpRecord",
        23: "BeginTransactionRecord",
        27: "RegisterControllerRecord",
        29: "UnregisterControllerRecord",
    }
    assert known.items() <= METADATA_RECORD_TYPES.items()
    assert len(METADATA_RECORD_TYPES) == 27


def test_every_record_type_leads_to_a_class_with_that_type() -> None:
    for number, name in METADATA_RECORD_TYPES.items():
        assert registry.data_class(name).__dict__["TYPE"] == number
    for types in (GROUP_RECORD_TYPES, TRANSACTION_RECORD_TYPES, SHARE_RECORD_TYPES):
        for number, names in types.items():
            for name in names:
                assert registry.data_class(name).__dict__["TYPE"] == number


def test_coordinator_logs_have_their_records() -> None:
    assert GROUP_RECORD_TYPES[1] == ("OffsetCommitKey", "OffsetCommitValue")
    assert GROUP_RECORD_TYPES[2] == ("GroupMetadataKey", "GroupMetadataValue")
    assert GROUP_RECORD_TYPES[3] == ("ConsumerGroupMetadataKey", "ConsumerGroupMetadataValue")
    assert TRANSACTION_RECORD_TYPES == {0: ("TransactionLogKey", "TransactionLogValue")}
    assert SHARE_RECORD_TYPES[0] == ("ShareSnapshotKey", "ShareSnapshotValue")


def test_every_data_module_holds_its_message() -> None:
    for name in DATA_MODULES:
        assert name == registry.data_class(name).NAME
