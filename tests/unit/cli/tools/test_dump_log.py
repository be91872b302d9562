from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidelog.cli.tools.dump_log import command

LOG = Path(__file__).parents[3] / "golden" / "log"


def dump(*args: object) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args])


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A partition that Apache Kafka wrote, to be damaged."""
    for file in (LOG / "tp0").iterdir():
        shutil.copy(file, tmp_path)
        (tmp_path / file.name).chmod(0o644)
    return tmp_path


def test_a_log_is_shown_batch_by_batch_in_kafkas_words() -> None:
    result = dump("--files", LOG / "tp0" / "00000000000000000000.log")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[1] == "Log starting offset: 0"
    assert lines[2] == (
        "baseOffset: 0 lastOffset: 4 count: 5 baseSequence: 0 lastSequence: 4 producerId: 0 producerEpoch: 0 "
        "partitionLeaderEpoch: 0 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
        "CreateTime: 1795254735538 size: 2106 magic: 2 compresscodec: none crc: 3351753323 isvalid: true"
    )


def test_records_and_control_records_are_shown_when_asked_for() -> None:
    path = LOG / "tp0" / "00000000000000000000.log"
    deep = dump("--files", path, "--deep-iteration").stdout.splitlines()
    assert deep[3] == "| offset: 0 CreateTime: 1795254735538 keySize: -1 valueSize: 400 sequence: 0 headerKeys: []"
    assert deep[-1].endswith("headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 0")
    data = dump("--files", path, "--print-data-log").stdout.splitlines()
    assert data[3].startswith(deep[3] + " payload: UKULLBPB")
    bare = dump("--files", path, "--print-data-log", "--skip-record-metadata").stdout.splitlines()
    assert bare[3].startswith("| payload: UKULLBPB")


def test_indexes_and_snapshots_are_shown_and_found_right() -> None:
    directory = LOG / "tp0"
    names = ("00000000000000000000.index", "00000000000000000000.timeindex", "00000000000000001759.snapshot")
    result = dump("--files", ",".join(str(directory / name) for name in names))
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "offset: 22 position: 5848" in lines
    assert "timestamp: 1795254735547 offset: 13" in lines
    assert lines[-1].startswith("producerId: 0 producerEpoch: 1 coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty")


def test_an_index_entry_that_points_elsewhere_is_named(copied: Path) -> None:
    index = bytearray((copied / "00000000000000000000.index").read_bytes())
    index[3] += 1
    (copied / "00000000000000000000.index").write_bytes(index)
    result = dump("--files", copied / "00000000000000000000.index", "--verify-index-only")
    assert result.exit_code == 1
    assert "Index offset: 23, log offset: 22" in result.stderr
    assert "position:" not in result.stdout


def test_a_wrong_timestamp_in_the_time_index_is_named(copied: Path) -> None:
    index = bytearray((copied / "00000000000000000000.timeindex").read_bytes())
    index[7] += 1
    (copied / "00000000000000000000.timeindex").write_bytes(index)
    result = dump("--files", copied / "00000000000000000000.timeindex")
    assert "Index timestamp: 1795254735548, log timestamp: 1795254735547" in result.stderr


def test_the_sanity_check_is_that_of_a_start(copied: Path) -> None:
    path = copied / "00000000000000000000.index"
    assert dump("--files", path, "--index-sanity-check").stdout.splitlines()[-1] == f"{path} passed sanity check."
    path.write_bytes(path.read_bytes()[:-1])
    assert dump("--files", path, "--index-sanity-check").exit_code == 1


def test_a_torn_tail_and_a_wrong_checksum_are_told(copied: Path) -> None:
    path = copied / "00000000000000000000.log"
    data = bytearray(path.read_bytes()[:5000])
    data[100] ^= 1
    path.write_bytes(data)
    result = dump("--files", path, "--deep-iteration")
    assert "isvalid: false" in result.stdout
    assert result.stdout.splitlines()[-1] == "The last 2894 bytes of 00000000000000000000.log are not a whole valid batch"
    assert "| offset" not in result.stdout


@pytest.mark.parametrize("size", [b"\0\0\0\0", b"\xff\xff\xff\xff"])
def test_a_size_that_no_batch_has_ends_the_dump_with_an_error(copied: Path, size: bytes) -> None:
    path = copied / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[2106 + 8 : 2106 + 12] = size
    path.write_bytes(data)
    result = dump("--files", path)
    assert result.exit_code == 1
    assert "the batch at position 2106 claims a size of" in result.stderr


def test_a_part_of_a_large_log_may_be_asked_for() -> None:
    result = dump("--files", LOG / "tp0" / "00000000000000000000.log", "--max-bytes", 3000)
    assert len([line for line in result.stdout.splitlines() if line.startswith("baseOffset")]) == 2


def test_transaction_state_is_shown_as_what_it_means() -> None:
    lines = dump("--files", LOG / "txn" / "00000000000000000000.log", "--transaction-log-decoder").stdout.splitlines()
    assert 'key: {"type":"0","data":{"transactionalId":"perf-txn"}} payload: {"version":"1","data":{"producerId":0,' in lines[3]


def test_what_is_not_there_or_not_known_is_said(tmp_path: Path) -> None:
    missing = dump("--files", tmp_path / "00000000000000000000.log")
    assert (missing.exit_code, "No such file" in missing.stderr) == (1, True)
    (tmp_path / "notes.txt").write_text("x")
    assert "Ignoring unknown file" in dump("--files", tmp_path / "notes.txt").stderr


def test_a_decoder_class_is_known_by_its_name_with_and_without_the_package() -> None:
    path = LOG / "tp0" / "00000000000000000000.log"
    for name in ("DefaultDecoder", "org.apache.kafka.tools.api.DefaultDecoder"):
        lines = dump("--files", path, "--value-decoder-class", name).stdout.splitlines()
        assert " payload: 554b554c4c42" in lines[3]


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--value-decoder-class=com.example.Avro", "--value-decoder-class com.example.Avro is a Java class, which is not loaded"),
        ("--key-decoder-class=x", "There are StringDecoder, IntegerDecoder, LongDecoder, DefaultDecoder"),
        ("--remote-log-metadata-decoder", "tiered storage"),
    ],
)
def test_what_only_java_decodes_is_refused_with_advice(flag: str, said: str) -> None:
    result = dump("--files", LOG / "tp0" / "00000000000000000000.log", flag)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Apache Kafka" in result.stderr
