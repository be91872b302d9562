from pathlib import Path

import pytest

from tidelog.metadata.records import MetadataLogError, decode_record, encode_record, record_version
from tidelog.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.no_op_record import NoOpRecord
from tidelog.protocol.messages.partition_record import PartitionRecord
from tidelog.protocol.messages.register_broker_record import RegisterBrokerRecord
from tidelog.protocol.record_types import METADATA_RECORD_TYPES
from tidelog.protocol.registry import data_class
from tidelog.records.batch import TruncatedBatch, iter_headers
from tidelog.records.record import iter_records

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata"


def kafka_values() -> list[bytes]:
    data = memoryview((GOLDEN / "00000000000000000000.log").read_bytes())
    values = []
    with pytest.raises(TruncatedBatch):
        for header in iter_headers(data):
            if not header.is_control:
                values += [bytes(record.value or b"") for record in iter_records(data[header.position : header.end_position])]
    return values


def test_every_record_of_a_log_that_kafka_wrote_is_encoded_back_to_the_same_bytes() -> None:
    values = kafka_values()
    assert len(values) == 399
    assert [encode_record(decode_record(value), 30) for value in values] == values


def test_a_record_is_framed_with_frame_version_type_and_version() -> None:
    assert encode_record(FeatureLevelRecord(name="a", feature_level=1), 30) == bytes([1, 12, 0, 2]) + b"a" + bytes([0, 1, 0])


@pytest.mark.parametrize("name", sorted(METADATA_RECORD_TYPES.values()))
def test_every_record_type_of_kafka_is_framed_and_read_back(name: str) -> None:
    record = data_class(name)()
    value = encode_record(record, 30)  # type: ignore[arg-type]
    assert name == decode_record(value).NAME
    assert encode_record(decode_record(value), 30) == value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "no value"),
        (b"", "ends inside its frame version"),
        (b"\x02\x0c\x00", "frame version 2"),
        (b"\x01\x63\x00", "type 99 is not known"),
        (b"\x01\x06\x00", "type 6 is not known"),
        (b"\x01\x0c\x01", "FeatureLevelRecord version 1 is not known"),
        (b"\x01\x0c\x00\x09ab", "FeatureLevelRecord version 0 cannot be read"),
        (b"\x01\x14\x00\x00\x00", "NoOpRecord version 0 cannot be read"),
        (b"\xff\xff\xff\xff\xff\x01", "more than 5 bytes"),
    ],
)
def test_a_value_that_cannot_be_read_in_full_is_refused_with_the_reason(value: bytes | None, says: str) -> None:
    with pytest.raises(MetadataLogError, match=says):
        decode_record(value)


@pytest.mark.parametrize(("metadata_version", "version"), [(30, 4), (29, 3), (17, 3), (16, 2), (8, 2), (7, 1)])
def test_registrations_are_written_as_the_metadata_version_calls_for(metadata_version: int, version: int) -> None:
    assert record_version(RegisterBrokerRecord(), metadata_version) == version


@pytest.mark.parametrize(("metadata_version", "version"), [(30, 2), (23, 2), (22, 1), (17, 1), (16, 0)])
def test_partitions_are_written_as_the_metadata_version_calls_for(metadata_version: int, version: int) -> None:
    assert record_version(PartitionRecord(), metadata_version) == version


def test_a_registration_change_is_written_at_the_lowest_version_that_holds_it() -> None:
    def version(record: BrokerRegistrationChangeRecord) -> int:
        return record_version(record, 30)

    assert version(BrokerRegistrationChangeRecord(fenced=-1)) == 0
    assert version(BrokerRegistrationChangeRecord(in_controlled_shutdown=1)) == 1
    assert version(BrokerRegistrationChangeRecord(log_dirs=[bytes(16)])) == 2
    assert version(BrokerRegistrationChangeRecord(cordoned_log_dirs=[])) == 3


def test_a_record_without_variants_is_version_zero() -> None:
    assert record_version(NoOpRecord(), 30) == 0
