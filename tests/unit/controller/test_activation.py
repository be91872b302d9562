import pytest

from tidelog.controller.activation import abort_records, bootstrap_records, registration_records
from tidelog.metadata.image import ClusterImage, ControllerImage, Endpoint
from tidelog.metadata.records import MetadataLogError
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord


def level(number: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=number)


def test_the_first_records_are_one_transaction_where_there_are_transactions() -> None:
    assert [record.NAME for record in bootstrap_records([level(13)], 1)] == [
        "BeginTransactionRecord", "FeatureLevelRecord", "EndTransactionRecord",
    ]  # fmt: skip
    assert [record.NAME for record in bootstrap_records([level(12)], 1)] == ["FeatureLevelRecord"]


def test_eligible_leader_replicas_go_by_a_minimum_that_all_brokers_have() -> None:
    elr = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    *_, minimum, end = bootstrap_records([level(30), elr], 2)
    assert end.NAME == "EndTransactionRecord"
    assert isinstance(minimum, ConfigRecord)
    found = (minimum.resource_type, minimum.resource_name, minimum.name, minimum.value)
    assert found == (4, "", "min.insync.replicas", "2")


def test_a_cluster_cannot_begin_without_a_metadata_version() -> None:
    with pytest.raises(MetadataLogError, match=r"names no metadata\.version"):
        bootstrap_records([FeatureLevelRecord(name="group.version", feature_level=1)], 1)


def test_a_controller_registers_with_its_listeners_and_ranges() -> None:
    me = ControllerImage(3, b"i" * 16, {"C": Endpoint("C", "h", 9093, 1)}, {"f": (0, 2)})  # type: ignore[arg-type]
    (record,) = registration_records(ClusterImage(features={"metadata.version": 15}), me)
    assert (record.controller_id, record.incarnation_id) == (3, b"i" * 16)  # type: ignore[attr-defined]
    assert (record.end_points[0].host, record.end_points[0].security_protocol) == ("h", 1)  # type: ignore[attr-defined]
    assert registration_records(ClusterImage(features={"metadata.version": 14}), me) == []


def test_a_transaction_that_a_predecessor_left_open_is_aborted() -> None:
    assert [record.NAME for record in abort_records()] == ["AbortTransactionRecord"]
