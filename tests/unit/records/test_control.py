"""Control records: bytes that an Apache Kafka node wrote are parsed, and made again as they were."""

from pathlib import Path

import pytest

from tidelog.records.batch import CorruptBatch, iter_headers, read_header
from tidelog.records.control import (
    ChangeVoter,
    ControlType,
    Endpoint,
    EndTxnMarker,
    LeaderChange,
    Voter,
    control_batch,
    control_type,
    end_txn_marker_batch,
    kraft_version_value,
    leader_change_value,
    parse_end_txn_marker,
    parse_kraft_version,
    parse_leader_change,
    parse_snapshot_header,
    parse_voters,
    snapshot_footer_value,
    snapshot_header_value,
    voters_value,
)
from tidelog.records.record import iter_records

GOLDEN = Path(__file__).parents[2] / "golden" / "batches"


def control_records(name: str) -> dict[int, bytes]:
    """Type and value of each control record in a golden file."""
    data = (GOLDEN / name).read_bytes()
    batches = [header for header in iter_headers(data) if header.is_control]
    records = [record for header in batches for record in iter_records(data, header)]
    return {control_type(record.key): record.value or b"" for record in records}


def test_a_voters_checkpoint_is_made_again_byte_for_byte() -> None:
    data = (GOLDEN / "voters.checkpoint").read_bytes()
    first, last = iter_headers(data)
    found = control_records("voters.checkpoint")
    voters = parse_voters(found[ControlType.KRAFT_VOTERS])
    assert [(v.voter_id, v.endpoints, v.min_kraft_version, v.max_kraft_version) for v in voters] == [
        (3000, (Endpoint("CONTROLLER", "127.0.0.1", 29000),), 0, 1)
    ]
    made = control_batch(
        [
            (ControlType.SNAPSHOT_HEADER, snapshot_header_value(parse_snapshot_header(found[ControlType.SNAPSHOT_HEADER]))),
            (ControlType.KRAFT_VERSION, kraft_version_value(parse_kraft_version(found[ControlType.KRAFT_VERSION]))),
            (ControlType.KRAFT_VOTERS, voters_value(voters)),
        ],
        timestamp_ms=first.base_timestamp,
        leader_epoch=first.leader_epoch,
    )
    made += control_batch(
        [(ControlType.SNAPSHOT_FOOTER, snapshot_footer_value())],
        timestamp_ms=last.base_timestamp,
        base_offset=last.base_offset,
        leader_epoch=last.leader_epoch,
    )
    assert made == data


def test_three_voters_of_a_snapshot() -> None:
    value = control_records("snapshot.checkpoint")[ControlType.KRAFT_VOTERS]
    voters = parse_voters(value)
    assert [voter.voter_id for voter in voters] == [3000, 3001, 3002]
    assert voters_value(voters) == value


def test_a_leader_change_that_kafka_wrote() -> None:
    value = control_records("cluster_metadata.log")[ControlType.LEADER_CHANGE]
    change = parse_leader_change(value)
    assert change == LeaderChange(3000, (ChangeVoter(3000),), (ChangeVoter(3000),))
    assert leader_change_value(change) == value


def test_a_leader_change_of_version_1_carries_directory_ids() -> None:
    change = LeaderChange(2, (ChangeVoter(2, b"d" * 16), ChangeVoter(3, b"e" * 16)), (), version=1)
    assert parse_leader_change(leader_change_value(change)) == change


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_marker_has_78_bytes_and_reads_back(commit: bool) -> None:
    data = end_txn_marker_batch(
        EndTxnMarker(commit, 9), producer_id=5, producer_epoch=2, timestamp_ms=77, base_offset=40, leader_epoch=3
    )
    header = read_header(data)
    assert header.size == 78
    assert header.is_control and header.is_transactional and header.base_sequence == -1
    assert (header.producer_id, header.producer_epoch, header.base_offset, header.leader_epoch) == (5, 2, 40, 3)
    (record,) = iter_records(data)
    assert record.timestamp == 77
    assert parse_end_txn_marker(record.key, record.value) == EndTxnMarker(commit, 9)


def test_other_control_records_are_no_markers() -> None:
    assert parse_end_txn_marker(b"\0\0\0\2", b"") is None
    assert parse_end_txn_marker(b"\0\0\0\x63", None) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\xff\xff\0\0", b"\0\0\0\0\0\0"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
    ],
)
def test_a_marker_that_cannot_be_read_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        parse_end_txn_marker(key, value)


def test_every_cut_and_every_extra_byte_of_a_value_is_corrupt() -> None:
    voter = Voter(1, b"v" * 16, (Endpoint("C", "host", 9093),))
    cases = [
        (parse_voters, voters_value([voter])),
        (parse_leader_change, leader_change_value(LeaderChange(1, (ChangeVoter(1),), ()))),
        (parse_snapshot_header, snapshot_header_value(12)),
        (parse_kraft_version, kraft_version_value(1)),
    ]
    for parse, value in cases:
        for length in range(len(value)):
            with pytest.raises(CorruptBatch):
                parse(value[:length])
        with pytest.raises(CorruptBatch):
            parse(value + b"\0")
        with pytest.raises(CorruptBatch):
            parse(None)


def test_versions_of_the_future_are_refused_and_unknown_tags_skipped() -> None:
    with pytest.raises(CorruptBatch, match="version 9"):
        parse_kraft_version(b"\0\x09\0\1\0")
    assert parse_kraft_version(b"\0\0\0\1" + b"\x01\x05\x03abc") == 1


def test_an_array_longer_than_the_value_is_refused_before_it_is_read() -> None:
    with pytest.raises(CorruptBatch, match="array of"):
        parse_voters(b"\0\0" + b"\xff\xff\xff\xff\x0f" + b"\0")
