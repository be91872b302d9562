from itertools import product
from pathlib import Path

import pytest

from tidelog.metadata.records import MetadataLogError
from tidelog.raft.quorum_state import QuorumState, decode, load, store
from tidelog.server.disk import DiskFileSystem

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata"


@pytest.mark.parametrize("name", ["quorum-state.static", "quorum-state.dynamic", "quorum-state.observer"])
def test_a_file_of_kafka_is_read_and_written_back_byte_for_byte(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    assert decode(data, name).encode() == data


def test_the_two_versions_say_what_they_say() -> None:
    static = decode((GOLDEN / "quorum-state.static").read_bytes(), "x")
    assert static == QuorumState(leader_id=1, leader_epoch=1, voters=(1,), version=0)
    dynamic = decode((GOLDEN / "quorum-state.dynamic").read_bytes(), "x")
    assert (dynamic.leader_id, dynamic.leader_epoch, dynamic.version) == (3001, 2, 1)


def test_a_stored_state_is_loaded_again_and_no_file_is_no_state(tmp_path: Path) -> None:
    fs = DiskFileSystem()
    assert load(fs, str(tmp_path)) is None
    state = QuorumState(leader_id=-1, leader_epoch=4, voted_id=2, voted_directory_id=b"d" * 16, version=1)  # type: ignore[arg-type]
    store(fs, str(tmp_path), state)
    assert load(fs, str(tmp_path)) == state


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"data_version":2}', b'{"data_version":1,"leaderId":1}', b"\xff"])
def test_a_file_that_cannot_be_read_is_named_and_never_taken_for_no_vote(data: bytes) -> None:
    with pytest.raises(MetadataLogError, match="/here/quorum-state"):
        decode(data, "/here/quorum-state")


@pytest.mark.parametrize("version", [0, 1])
def test_no_flipped_bit_of_a_stored_state_is_believed(tmp_path: Path, version: int) -> None:
    fs = DiskFileSystem()
    state = QuorumState(leader_id=3, leader_epoch=14, voted_id=2, voters=(1, 2, 3) if version == 0 else (), version=version)
    store(fs, str(tmp_path), state)
    data = (tmp_path / "quorum-state").read_bytes()
    assert decode(data, "x") == state
    for position, bit in product(range(len(data)), range(8)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << bit
        try:
            found = decode(bytes(damaged), "x")
        except MetadataLogError:
            continue
        assert found == state, (position, bit)
