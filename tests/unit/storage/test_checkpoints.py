"""Small text files: Kafka's bytes, old-or-new replacement, and errors that name the file."""

from itertools import product
from pathlib import Path

import pytest

from tidelog.model.ids import TopicPartition, uuid_from_text
from tidelog.storage import checkpoints
from tidelog.storage.checkpoints import BadCheckpoint, MetaProperties
from tidelog.testing.simulation.disk import SimDisk

GOLDEN = Path("tests/golden/log")


def disk_with(name: str, content: bytes) -> SimDisk:
    disk = SimDisk()
    disk.make_dirs("/d")
    disk.open(f"/d/{name}", create=True).write(0, content)
    return disk


def test_an_offset_checkpoint_of_kafka_reads_and_writes_back_byte_for_byte() -> None:
    raw = (GOLDEN / "ckpt" / checkpoints.RECOVERY_POINTS).read_bytes()
    offsets = checkpoints.read_offsets(disk_with("c", raw), "/d/c")
    assert offsets[TopicPartition("tp", 1)] == 1243
    assert len(offsets) == 6
    assert checkpoints.encode_offsets(offsets) == raw


@pytest.mark.parametrize("raw", [b"", b"0\n0\n"])
def test_an_empty_checkpoint_has_no_entries(raw: bytes) -> None:
    assert checkpoints.read_offsets(disk_with("c", raw), "/d/c") == {}


def test_a_missing_checkpoint_has_no_entries() -> None:
    assert checkpoints.read_offsets(disk_with("c", b""), "/d/other") == {}


@pytest.mark.parametrize(
    "raw", [b"1\n0\n", b"0\n2\nt 0 5\n", b"0\nmany\n", b"0\n1\nt 0\n", b"0\n1\nt 0 x\n", b"\xff\xfe\n", b"0\n"]
)
def test_a_checkpoint_that_does_not_read_names_its_file(raw: bytes) -> None:
    with pytest.raises(BadCheckpoint, match="/d/c"):
        checkpoints.read_offsets(disk_with("c", raw), "/d/c")


def test_leader_epochs_are_written_as_kafka_does() -> None:
    raw = (GOLDEN / "tp0" / checkpoints.LEADER_EPOCHS).read_bytes()
    assert checkpoints.read_epochs(disk_with("c", raw), "/d/c") == [(0, 0)]
    assert checkpoints.encode_epochs([(0, 0)]) == raw
    with pytest.raises(BadCheckpoint):
        checkpoints.read_epochs(disk_with("c", b"0\n1\n5\n"), "/d/c")


def test_partition_metadata_has_43_bytes_and_no_final_newline() -> None:
    raw = (GOLDEN / "tp0" / checkpoints.PARTITION_METADATA).read_bytes()
    topic_id = checkpoints.read_partition_metadata(disk_with(checkpoints.PARTITION_METADATA, raw), "/d")
    assert topic_id == uuid_from_text("KvXG89kvRTC0n0MYS0A8Pg")
    assert checkpoints.encode_partition_metadata(topic_id) == raw


@pytest.mark.parametrize("raw", [b"", b"\0" * 43])
def test_partition_metadata_that_was_never_synced_counts_as_missing(raw: bytes) -> None:
    assert checkpoints.read_partition_metadata(disk_with(checkpoints.PARTITION_METADATA, raw), "/d") is None


@pytest.mark.parametrize("raw", [b"version: 1\ntopic_id: x", b"version: 0\n", b"version: 0\ntopic_id: abc", b"nonsense"])
def test_partition_metadata_that_does_not_read_is_an_error(raw: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        checkpoints.read_partition_metadata(disk_with(checkpoints.PARTITION_METADATA, raw), "/d")


def test_meta_properties_of_kafka_are_understood() -> None:
    raw = (GOLDEN / "ckpt" / checkpoints.META_PROPERTIES).read_bytes()
    meta = checkpoints.read_meta_properties(disk_with(checkpoints.META_PROPERTIES, raw), "/d")
    assert meta == MetaProperties("AAAAAAAAAAAAAAAAAAAAAQ", 2, uuid_from_text("jYktmGvx9FwH0HC2Pjmzdw"))
    again = checkpoints.read_meta_properties(disk_with(checkpoints.META_PROPERTIES, meta.encode()), "/d")
    assert again == meta


def test_a_directory_without_meta_properties_is_not_formatted() -> None:
    assert checkpoints.read_meta_properties(disk_with("c", b""), "/d") is None


@pytest.mark.parametrize(
    "raw", [b"version=0\nbroker.id=1\n", b"version=1\nnode.id=1\n", b"version=1\ncluster.id=a\nnode.id=x\n", b"version\n"]
)
def test_meta_properties_that_do_not_read_are_an_error(raw: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        checkpoints.read_meta_properties(disk_with(checkpoints.META_PROPERTIES, raw), "/d")


def test_the_marker_of_a_clean_shutdown_is_kafkas_json() -> None:
    assert checkpoints.encode_clean_shutdown(492) == b'{"version":0,"brokerEpoch":492}'
    disk = disk_with(checkpoints.CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":492}')
    assert checkpoints.read_clean_shutdown(disk, "/d") == 492


@pytest.mark.parametrize(("raw", "epoch"), [(b"", -1), (b"{}", -1), (b"[1]", -1)])
def test_a_marker_without_an_epoch_still_says_clean(raw: bytes, epoch: int) -> None:
    assert checkpoints.read_clean_shutdown(disk_with(checkpoints.CLEAN_SHUTDOWN, raw), "/d") == epoch
    assert checkpoints.read_clean_shutdown(SimDisk(), "/d") is None


def test_a_replaced_file_is_old_or_new_after_a_power_loss_at_any_moment() -> None:
    disk = disk_with("c", b"old")
    disk.open("/d/c").sync()
    disk.sync_dir("/d")
    disk.sync_dir("/")
    images: list[SimDisk] = []
    disk.on_operation = lambda number, kind, path: images.extend(disk.crash(seed) for seed in range(20))
    checkpoints.replace_file(disk, "/d/c", b"new and longer")
    found = {checkpoints.read_file(image, "/d/c") for image in images}
    assert found == {b"old", b"new and longer"}
    assert all(checkpoints.read_file(disk.crash(seed), "/d/c") == b"new and longer" for seed in range(20))


def test_no_flipped_bit_of_our_meta_properties_is_believed() -> None:
    meta = checkpoints.MetaProperties("5L6g3nShT-eMCtK--X86sw", 7, b"d" * 16)
    raw = meta.encode()
    for position, bit in product(range(len(raw)), range(8)):
        damaged = bytearray(raw)
        damaged[position] ^= 1 << bit
        try:
            found = checkpoints.read_meta_properties(disk_with(checkpoints.META_PROPERTIES, bytes(damaged)), "/d")
        except checkpoints.BadCheckpoint:
            continue
        assert found == meta, (position, bit)
