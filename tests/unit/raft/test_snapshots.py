import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import EMPTY_IMAGE
from tidelog.metadata.records import MetadataLogError, MetadataRecord
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.topic_record import TopicRecord
from tidelog.raft.snapshots import (
    RECORDS_A_BREATH,
    Snapshot,
    SnapshotId,
    SnapshotJob,
    encode_snapshot,
    list_snapshots,
    parse_file_name,
    read_snapshot,
    remove_leftovers,
    write_snapshot,
)
from tidelog.raft.voters import VoterSet
from tidelog.records.batch import iter_headers
from tidelog.records.control import Endpoint, Voter
from tidelog.server.disk import DiskFileSystem

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata"
FS = DiskFileSystem()
VOTERS = VoterSet.of([Voter(1, b"d" * 16, (Endpoint("C", "h", 1),))])


def encode(records: Iterable[MetadataRecord] = (), voters: VoterSet | None = None) -> list[bytearray]:
    return list(encode_snapshot(records, metadata_version=30, epoch=3, now_ms=2000, last_timestamp_ms=1000, voters=voters))


def written_at_the_times_of(path: Path, snapshot: Snapshot, metadata_version: int) -> bytes:
    """Our form of the snapshot, each batch with the time that the file's batch has."""
    written = b""
    for number, header in enumerate(iter_headers(path.read_bytes())):
        batches = encode_snapshot(
            snapshot.records,
            metadata_version=metadata_version,
            epoch=0,
            now_ms=header.base_timestamp,
            last_timestamp_ms=snapshot.timestamp_ms,
            voters=snapshot.voters,
        )
        written += list(batches)[number]
    return written


def test_file_names_tell_the_end_offset_and_the_epoch() -> None:
    assert SnapshotId(3599, 2).file_name == "00000000000000003599-0000000002.checkpoint"
    assert parse_file_name("00000000000000003599-0000000002.checkpoint") == SnapshotId(3599, 2)
    for name in (
        "bootstrap.checkpoint",
        "00000000000000003599-0000000002.checkpoint.part",
        "00000000000000003599.log",
        "1-2.checkpoint",
    ):
        assert parse_file_name(name) is None


def test_what_kafkas_format_wrote_is_read_and_written_back_byte_for_byte() -> None:
    path = GOLDEN / "bootstrap.checkpoint"
    snapshot = read_snapshot(FS, str(path))
    assert written_at_the_times_of(path, snapshot, 30) == path.read_bytes()


def test_the_standalone_checkpoint_of_kafka_is_read_and_written_back_byte_for_byte() -> None:
    path = GOLDEN / "00000000000000000000-0000000000.checkpoint"
    snapshot = read_snapshot(FS, str(path))
    assert (snapshot.kraft_version, snapshot.records) == (1, ())
    assert snapshot.voters is not None
    assert snapshot.voters.ids == (3000,)
    assert written_at_the_times_of(path, snapshot, 0) == path.read_bytes()


def test_a_live_snapshot_of_kafka_is_read() -> None:
    snapshot = read_snapshot(FS, str(GOLDEN / "00000000000000003599-0000000002.checkpoint"))
    assert (snapshot.timestamp_ms, snapshot.kraft_version, len(snapshot.records)) == (1795256413789, 1, 30)
    assert snapshot.voters is not None
    assert snapshot.voters.ids == (3000, 3001, 3002)


def test_a_snapshot_is_written_whole_read_only_and_once(tmp_path: Path) -> None:
    records = [TopicRecord(name=f"t{n}", topic_id=bytes([n % 256]) * 16) for n in range(3000)]
    snapshot_id = SnapshotId(50, 3)
    batches = encode(records, VOTERS)
    assert len(batches) == 1 + 3 + 1
    size = write_snapshot(FS, str(tmp_path), snapshot_id, batches)
    path = tmp_path / snapshot_id.file_name
    assert path.stat().st_size == size
    assert path.stat().st_mode & 0o777 == 0o400
    assert os.listdir(tmp_path) == [snapshot_id.file_name]
    snapshot = read_snapshot(FS, str(path))
    assert [record.name for record in snapshot.records] == [record.name for record in records]  # type: ignore[attr-defined]
    assert (snapshot.timestamp_ms, snapshot.voters) == (1000, VOTERS)
    assert write_snapshot(FS, str(tmp_path), snapshot_id, []) == size


def test_offsets_in_a_snapshot_run_from_zero_without_a_gap(tmp_path: Path) -> None:
    data = b"".join(encode([FeatureLevelRecord(name="f", feature_level=1)] * 1500))
    headers = list(iter_headers(data))
    assert [header.base_offset for header in headers] == [0, 1, 1025, 1501]
    assert {header.leader_epoch for header in headers} == {3}
    assert [header.is_control for header in headers] == [True, False, False, True]


def damaged(data: bytes) -> dict[str, bytes]:
    headers = list(iter_headers(data))
    flipped = bytearray(data)
    flipped[headers[1].position + 70] ^= 1
    return {
        "a wrong checksum": bytes(flipped),
        "only .* are there": data[:-5],
        "no snapshot header or no footer": data[: headers[-1].position],
        "outside the snapshot's header and footer": data[headers[1].position :],
        "lies outside": data + bytes(data[headers[1].position : headers[2].position]),
    }


@pytest.mark.parametrize("says", list(damaged(b"".join(encode([FeatureLevelRecord(name="f", feature_level=1)])))))
def test_a_damaged_snapshot_is_refused_by_name_and_place(tmp_path: Path, says: str) -> None:
    data = damaged(b"".join(encode([FeatureLevelRecord(name="f", feature_level=1)])))[says]
    path = tmp_path / "00000000000000000001-0000000001.checkpoint"
    path.write_bytes(data)
    with pytest.raises(MetadataLogError, match=says) as caught:
        read_snapshot(FS, str(path))
    assert str(path) in str(caught.value)


def test_a_missing_snapshot_is_named(tmp_path: Path) -> None:
    with pytest.raises(MetadataLogError, match="does not exist"):
        read_snapshot(FS, str(tmp_path / "x"))


def test_leftovers_of_a_crash_go_and_whole_snapshots_stay(tmp_path: Path) -> None:
    whole = SnapshotId(5, 1)
    for name in (whole.file_name, SnapshotId(9, 1).file_name + ".part", SnapshotId(2, 1).file_name + ".deleted", "quorum-state"):
        (tmp_path / name).write_bytes(b"x")
    remove_leftovers(FS, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [whole.file_name, "quorum-state"]
    assert list_snapshots(FS, str(tmp_path)) == [whole]


def test_a_job_writes_the_image_it_was_made_of(tmp_path: Path) -> None:
    delta = ClusterDelta(EMPTY_IMAGE)
    delta.replay(FeatureLevelRecord(name="metadata.version", feature_level=30))
    job = SnapshotJob(FS, str(tmp_path), delta.apply(41, 7, 500), None, 600)
    job.run()
    assert job.error is None
    assert job.id == SnapshotId(42, 7)
    assert read_snapshot(FS, str(tmp_path / job.id.file_name)).timestamp_ms == 500


def test_a_job_keeps_the_error_of_a_directory_that_is_gone(tmp_path: Path) -> None:
    job = SnapshotJob(FS, str(tmp_path / "gone"), EMPTY_IMAGE, None, 0)
    job.run()
    assert isinstance(job.error, FileNotFoundError)


def test_a_job_of_a_large_image_rests_again_and_again(tmp_path: Path) -> None:
    delta = ClusterDelta(EMPTY_IMAGE)
    for number in range(3 * RECORDS_A_BREATH):
        delta.replay(ConfigRecord(resource_type=4, resource_name=str(number), name="a", value="b"))
    breaths: list[None] = []
    job = SnapshotJob(FS, str(tmp_path), delta.apply(41, 7, 500), None, 600)
    job.run(lambda: breaths.append(None))
    assert job.error is None and len(breaths) == 3
