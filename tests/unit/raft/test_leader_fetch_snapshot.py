"""A metadata snapshot, part by part."""

from tests.unit.raft.driver import Driver, fetch_request, only, snapshot_request
from tidelog.model.errors import ErrorCode
from tidelog.raft.effects import ReplySnapshotPart
from tidelog.raft.log_shape import LogShape
from tidelog.raft.snapshots import SnapshotId


def test_a_snapshot_is_named_and_given_piece_by_piece() -> None:
    node = Driver(shape=LogShape(end_offset=30, epochs=[(1, 0)], snapshots=[(SnapshotId(20, 1), 1000)]), said_at=3)
    node.elect()
    told = only(node.ask(fetch_request(2, 2, 0, 0))).snapshot_id
    assert (told.end_offset, told.epoch) == (20, 1)
    piece = only(node.ask(snapshot_request(2, 2, (20, 1), 100)))
    assert (piece.error_code, piece.size, piece.position) == (0, 1000, 100)
    assert node.of(ReplySnapshotPart)[-1].position == 100
    assert only(node.ask(snapshot_request(2, 2, (20, 1), 1000))).error_code == ErrorCode.POSITION_OUT_OF_RANGE
    assert only(node.ask(snapshot_request(2, 2, (19, 1), 0))).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert only(node.ask(snapshot_request(2, 1, (20, 1), 0))).error_code == ErrorCode.FENCED_LEADER_EPOCH
