import struct

import pytest

from tests.unit.raft.driver import Driver, fetch_answer, only, vote_request, voters
from tidelog.model.ids import METADATA_TOPIC
from tidelog.protocol.messages import fetch, fetch_snapshot
from tidelog.raft.effects import AppendFetched, ForgetLoss, InstallSnapshot, Send, StoreSnapshotPart, Truncate
from tidelog.raft.election import Role
from tidelog.raft.log_shape import LogEnd, LogShape
from tidelog.raft.raft_log import QuorumFault
from tidelog.raft.snapshots import SnapshotId
from tidelog.records.batch import CRC_POSITION, compute_crc, read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import ControlType, control_batch, voters_value


def batch(offset: int, epoch: int, count: int = 1) -> bytes:
    return bytes(build_batch([RecordData(None, b"v", 1)] * count, base_offset=offset, leader_epoch=epoch))


def follower(**log: object) -> Driver:
    node = Driver(shape=LogShape(**log) if log else None)  # type: ignore[arg-type]
    node.follow(3)
    return node


def last_fetch(node: Driver) -> Send:
    return node.sends(fetch.FetchRequest)[2]


def test_more_is_asked_for_only_when_what_came_is_on_disk() -> None:
    node = follower()
    asked = last_fetch(node)
    partition = asked.request.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.current_leader_epoch) == (0, 0, 3)
    node.answer(asked, fetch_answer(2, 3, batch(0, 1, 2) + batch(2, 3), high_watermark=2))
    assert node.of(AppendFetched)[-1].base_offset == 0
    assert node.quorum.log.shape.end.offset == 3 and node.machine.high_watermark == 2
    assert last_fetch(node) is asked
    node.sync()
    partition = last_fetch(node).request.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.high_watermark) == (3, 3, 2)


@pytest.mark.parametrize(
    "records",
    [
        batch(1, 1),
        batch(0, 4),
        batch(0, 2) + batch(1, 1),
        batch(0, 1)[:-1] + b"\xff",
        b"\0" * 70,
    ],
    ids=["a gap", "an epoch to come", "epochs that fall", "a wrong checksum", "no batch"],
)
def test_records_that_cannot_follow_are_not_taken(records: bytes) -> None:
    node = follower()
    node.answer(last_fetch(node), fetch_answer(2, 3, records))
    assert node.of(AppendFetched) == [] and node.quorum.log.shape.end.offset == 0


def test_a_batch_that_the_answers_limit_cut_comes_with_the_next() -> None:
    node = follower()
    node.answer(last_fetch(node), fetch_answer(2, 3, batch(0, 1) + batch(1, 1)[:40]))
    assert node.of(AppendFetched)[-1].data == batch(0, 1)


def test_voters_in_the_log_count_from_the_append_on() -> None:
    node = follower()
    said = control_batch([(ControlType.KRAFT_VOTERS, voters_value(voters(1, 2, 3, 4).voters))], timestamp_ms=1, leader_epoch=1)
    node.answer(last_fetch(node), fetch_answer(2, 3, bytes(said)))
    assert node.machine.voters.ids == (1, 2, 3, 4)


def test_another_history_is_cut_away_but_never_what_is_committed() -> None:
    node = follower(end_offset=10, epochs=[(1, 0), (2, 5)])
    node.answer(last_fetch(node), fetch_answer(2, 3, diverging_epoch=fetch.EpochEndOffset(1, 4)))
    assert node.of(Truncate)[-1].offset == 4
    node.answer(last_fetch(node), fetch_answer(2, 3, batch(4, 3), high_watermark=5))
    node.sync()
    with pytest.raises(QuorumFault, match="lost its log"):
        node.answer(last_fetch(node), fetch_answer(2, 3, diverging_epoch=fetch.EpochEndOffset(1, 3)))


def piece(position: int, data: bytes, size: int, leader_epoch: int = 3, error: int = 0) -> fetch_snapshot.FetchSnapshotResponse:
    partition = fetch_snapshot.ResponsePartitionSnapshot(
        0,
        error,
        fetch_snapshot.ResponseSnapshotId(20, 2),
        fetch_snapshot.LeaderIdAndEpoch(2, leader_epoch),
        size,
        position,
        data,
    )
    return fetch_snapshot.FetchSnapshotResponse(topics=[fetch_snapshot.ResponseTopicSnapshot(METADATA_TOPIC, [partition])])


def test_a_snapshot_comes_in_pieces_and_then_takes_the_logs_place() -> None:
    node = follower(end_offset=5, epochs=[(1, 0)])
    node.answer(last_fetch(node), fetch_answer(2, 3, snapshot_id=fetch.SnapshotId(20, 2)))
    asked = node.sends(fetch_snapshot.FetchSnapshotRequest)
    node.answer(asked[2], piece(0, b"ab", 5))
    asked = node.sends(fetch_snapshot.FetchSnapshotRequest)
    assert only(asked[2].request).position == 2
    node.answer(asked[2], piece(2, b"cde", 5))
    assert [each.data for each in node.of(StoreSnapshotPart)] == [b"ab", b"cde"]
    assert node.of(InstallSnapshot)[-1].size == 5
    assert node.quorum.log.shape.end.offset == 5, "until it is in its place the log is what it was"
    node.pass_time(10_000)
    assert node.machine.leader_id == 2, "and there is no election"
    node.did(node.machine.snapshot_installed(SnapshotId(20, 2), 5, 1, voters(1, 2), node.now))
    assert (node.quorum.log.shape.end.offset, node.machine.high_watermark, node.machine.voters.ids) == (20, 20, (1, 2))
    assert only_fetch(node) == 20


def only_fetch(node: Driver) -> int:
    return int(last_fetch(node).request.topics[0].partitions[0].fetch_offset)


def test_a_snapshot_that_is_gone_or_makes_no_sense_is_asked_for_anew() -> None:
    node = follower()
    node.answer(last_fetch(node), fetch_answer(2, 3, snapshot_id=fetch.SnapshotId(20, 2)))
    node.answer(node.sends(fetch_snapshot.FetchSnapshotRequest)[2], piece(0, b"", 5, error=98))
    assert node.quorum.state.snapshot is None
    node.answer(last_fetch(node), fetch_answer(2, 3, snapshot_id=fetch.SnapshotId(20, 2)))
    node.answer(node.sends(fetch_snapshot.FetchSnapshotRequest)[2], piece(7, b"ab", 5))
    assert node.of(StoreSnapshotPart) == []
    assert not only(node.ask(vote_request(3, 3, (2, 99)))).vote_granted


def control(*records: tuple[int, bytes | None]) -> bytes:
    return bytes(
        build_batch([RecordData(struct.pack(">hh", 0, kind), value, 1) for kind, value in records], leader_epoch=3, control=True)
    )


def spoiled(data: bytes, position: int, value: int) -> bytes:
    """Another number in the header, and the checksum as if that were right."""
    changed = bytearray(data)
    struct.pack_into(">i", changed, position, value)
    struct.pack_into(">I", changed, CRC_POSITION, compute_crc(changed, read_header(changed)))
    return bytes(changed)


VOTERS = voters_value(voters(1, 2, 3).voters)
LAST_OFFSET_DELTA, RECORDS_COUNT = 23, 57


@pytest.mark.parametrize(
    "lie",
    [
        control((ControlType.KRAFT_VOTERS, b"")),
        control((ControlType.KRAFT_VOTERS, None)),
        control((ControlType.KRAFT_VOTERS, VOTERS + b"x")),
        control((ControlType.KRAFT_VERSION, b"\xff" * 9)),
        control((ControlType.LEADER_CHANGE, b""), (ControlType.KRAFT_VOTERS, b"\x00\x01")),
        spoiled(control((ControlType.KRAFT_VOTERS, VOTERS), (ControlType.KRAFT_VOTERS, VOTERS)), LAST_OFFSET_DELTA, 0),
        spoiled(batch(0, 3), RECORDS_COUNT, -1),
    ],
    ids=["empty", "none", "more than a set", "no version", "the second of two", "more records than offsets", "negative count"],
)
def test_of_what_a_leader_sends_all_or_nothing_is_taken_over(lie: bytes) -> None:
    node = follower()
    node.answer(last_fetch(node), fetch_answer(2, 3, lie))
    assert node.of(AppendFetched) == []
    assert node.quorum.log.shape.end_offset == 0 and node.quorum.log.sets.offset < 0
    node.pass_time(node.config.retry_backoff_ms)
    node.answer(last_fetch(node), fetch_answer(2, 3, batch(0, 3)))
    assert len(node.of(AppendFetched)) == 1, "and it goes on"


def mending() -> Driver:
    """Of the records 0 to 9 of epoch 3, it lost those from 4 on; it follows the leader of that epoch."""
    node = Driver(shape=LogShape(end_offset=4, epochs=[(3, 0)]), lost_end=LogEnd(3, 10))
    node.follow(3)
    return node


def test_a_log_that_was_damaged_has_everything_again_once_the_leader_has_no_more() -> None:
    node = mending()
    node.answer(last_fetch(node), fetch_answer(2, 3, batch(4, 3), high_watermark=5))
    node.sync()
    assert node.of(ForgetLoss) == [] and not only(node.ask(vote_request(3, 4, (3, 5)))).vote_granted
    node.follow(4)
    node.answer(last_fetch(node), fetch_answer(2, 4, high_watermark=5))
    assert len(node.of(ForgetLoss)) == 1
    node.answer(last_fetch(node), fetch_answer(2, 4, high_watermark=5))
    assert len(node.of(ForgetLoss)) == 1
    assert only(node.ask(vote_request(3, 5, (3, 5)))).vote_granted


def test_a_log_that_was_damaged_is_not_whole_by_answers_about_something_else() -> None:
    node = mending()
    node.answer(last_fetch(node), fetch_answer(2, 3, diverging_epoch=fetch.EpochEndOffset(3, 3)))
    node.sync()
    node.answer(last_fetch(node), fetch_answer(2, 3, snapshot_id=fetch.SnapshotId(8, 3)))
    assert node.of(ForgetLoss) == []


def test_an_answer_without_records_below_what_is_committed_is_not_the_end_of_the_leaders_log() -> None:
    node = mending()
    node.answer(last_fetch(node), fetch_answer(2, 3, high_watermark=5))
    assert node.of(ForgetLoss) == []


def test_a_log_that_was_damaged_campaigns_once_it_has_caught_up_with_a_leader() -> None:
    node = mending()
    node.answer(last_fetch(node), fetch_answer(2, 3))
    node.pass_time(5_000)
    assert node.machine.role is Role.PROSPECTIVE
