from collections.abc import Iterator
from pathlib import Path

import pytest

from tidelog.raft.log_opening import open_log
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.shared_reads import SharedReads
from tidelog.server.disk import DiskFileSystem


@pytest.fixture
def log(tmp_path: Path) -> Iterator[MetadataLog]:
    log = open_log(DiskFileSystem(), str(tmp_path), MetadataLogConfig(), 0)
    log.append_values([b"first"], 1, 0)
    yield log
    log.close()


def test_who_asks_for_the_same_gets_the_same_bytes(log: MetadataLog) -> None:
    reads = SharedReads(log)
    found = reads.read(0, 1 << 20)
    assert b"first" in found
    assert reads.read(0, 1 << 20) is found


def test_another_offset_and_a_log_that_grew_are_read_anew(log: MetadataLog) -> None:
    reads = SharedReads(log)
    found = reads.read(0, 1 << 20)
    log.append_values([b"second"], 1, 0)
    assert reads.read(0, 1 << 20) == found + reads.read(1, 1 << 20)
    assert reads.read(2, 1 << 20) == b""


def test_after_it_was_forgotten_the_log_is_asked_again(log: MetadataLog) -> None:
    reads = SharedReads(log)
    found = reads.read(0, 1 << 20)
    reads.forget()
    assert reads.read(0, 1 << 20) == found and reads.read(0, 1 << 20) is not found
