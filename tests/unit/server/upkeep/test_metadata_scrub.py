"""The scrub of the metadata log: what it finds is replaced by a snapshot of what is in memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.unit.controller.sole_member import SoleMember
from tests.unit.raft.written import SEGMENT, flip, flip_in_batch
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.raft import quorum_state
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.lost_records import LostRecords
from tidelog.raft.mark_files import FLUSHED, LOST_END, read_flushed, read_lost_end, write_lost_end
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.metadata_scrub import MetadataScrub

FS = DiskFileSystem()
NOW = 1_800_000_000_000


@pytest.fixture
def node(tmp_path: Path) -> SoleMember:
    format_dirs(FS, FormatRequest([str(tmp_path)], 1, "cluster"), rng=random.Random(1), now_ms=NOW)
    return SoleMember(FS, tmp_path, now_ms=NOW)


def scrub_of(node: SoleMember, runtime: LoopRuntime) -> MetadataScrub:
    config = BrokerConfig.from_properties({"tidelog.scrub.max.bytes.per.second": "1000000000"})
    return MetadataScrub(node.member, config, runtime, lambda event: node.do(event()))


def write_snapshot(node: SoleMember) -> Path:
    """The node writes the snapshot that is due now; its file."""
    assert node.snapshot_due(NOW)
    job = node.snapshot_job(NOW)
    job.run()
    node.snapshot_finished(job, NOW)
    return Path(node.log.dir, job.id.file_name)


def test_damaged_records_are_found_and_a_snapshot_takes_their_place(
    node: SoleMember, runtime: LoopRuntime, tmp_path: Path
) -> None:
    scrub = scrub_of(node, runtime)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, scrub.damaged, scrub.bytes) == (0, 0, node.log.log.files.segments.size_bytes)
    flip_in_batch(Path(node.log.dir, SEGMENT), 1, 70)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, scrub.damaged) == (1, 1)
    write_snapshot(node)
    assert (scrub.damaged, node.snapshot_due(NOW)) == (0, False)
    before = node.image.features
    node.log.close()
    assert SoleMember(FS, tmp_path, now_ms=NOW).image.features == before


def test_a_damaged_snapshot_is_found_and_written_again(node: SoleMember, runtime: LoopRuntime, tmp_path: Path) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=1000)
    node.submit(QuorumController.create_topics, request, NOW)
    node.flush_now(NOW)
    job = node.snapshot_job(NOW)
    job.run()
    node.snapshot_finished(job, NOW)
    path = Path(node.log.dir, job.id.file_name)
    content = path.read_bytes()
    path.chmod(0o644)
    flip(path, 100)
    scrub = scrub_of(node, runtime)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, scrub.damaged) == (1, 1)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, scrub.damaged) == (1, 1)
    assert write_snapshot(node) == path
    assert (scrub.damaged, len(path.read_bytes())) == (0, len(content))
    runtime.loop.run_until_complete(scrub.run_pass())
    assert scrub.found == 1


def test_a_damaged_vote_is_written_again(node: SoleMember, runtime: LoopRuntime, tmp_path: Path) -> None:
    path = Path(node.log.dir, quorum_state.FILE_NAME)
    before = path.read_bytes()
    scrub = scrub_of(node, runtime)
    flip(path, before.index(b"leaderEpoch") + 13)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, path.read_bytes()) == (1, before)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert scrub.found == 1
    node.log.close()
    assert SoleMember(FS, tmp_path, now_ms=NOW).epoch > 0


def test_a_damaged_note_of_what_is_flushed_is_written_with_the_next_flush(node: SoleMember, runtime: LoopRuntime) -> None:
    path = Path(node.log.dir, FLUSHED)
    scrub = scrub_of(node, runtime)
    flip(path, 0)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, read_flushed(FS, node.log.dir)) == (1, LogEnd(-1, 0))
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=1000)
    node.submit(QuorumController.create_topics, request, NOW)
    node.flush_now(NOW)
    assert read_flushed(FS, node.log.dir) == LogEnd(node.epoch, node.log.end_offset)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert scrub.found == 1


def test_a_damaged_note_of_lost_records_is_written_again(node: SoleMember, runtime: LoopRuntime) -> None:
    lost = LogEnd(node.epoch, node.log.end_offset + 5)
    node.member.machine.quorum.lost = LostRecords(lost)
    write_lost_end(FS, node.log.dir, lost)
    scrub = scrub_of(node, runtime)
    flip(Path(node.log.dir, LOST_END), 1)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, read_lost_end(FS, node.log.dir)) == (1, lost)


def test_a_voter_that_lost_nothing_has_no_note_afterwards_either(node: SoleMember, runtime: LoopRuntime) -> None:
    scrub = scrub_of(node, runtime)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert scrub.found == 0
    assert read_lost_end(FS, node.log.dir) == NOTHING_LOST
    assert not Path(node.log.dir, LOST_END).exists()
