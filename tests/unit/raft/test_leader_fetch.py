import pytest

from tests.unit.raft.driver import Driver, fetch_request, only
from tidelog.model.errors import ErrorCode
from tidelog.raft.effects import HighWatermarkMoved, ReplyRecords
from tidelog.raft.log_shape import LogShape
from tidelog.raft.snapshots import SnapshotId


def leader() -> Driver:
    node = Driver()
    node.elect()
    return node


def test_who_does_not_lead_says_so_and_who_leads_instead() -> None:
    node = Driver()
    node.follow(3)
    wrong_epoch = only(node.ask(fetch_request(3, 2, 0, 0)))
    assert (wrong_epoch.error_code, wrong_epoch.current_leader.leader_id) == (ErrorCode.FENCED_LEADER_EPOCH, 2)
    assert only(node.ask(fetch_request(3, 4, 0, 0))).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert only(node.ask(fetch_request(3, 3, 0, 0))).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("broken", [{"offset": -1}, {"last_epoch": -1}, {"last_epoch": 9}, {"max_wait_ms": -1}])
def test_a_fetch_that_cannot_be_is_refused(broken: dict[str, int]) -> None:
    values = {"offset": 0, "last_epoch": 0, **broken}
    node = leader()
    assert only(node.ask(fetch_request(2, 1, **values))).error_code == ErrorCode.INVALID_REQUEST


def test_records_are_handed_out_before_they_are_committed_and_a_fetch_behind_them_commits_them() -> None:
    node = leader()
    answer = node.ask(fetch_request(2, 1, 0, 0))
    assert only(answer).high_watermark == -1
    assert node.of(ReplyRecords)[-1].offset == 0
    node.sync()
    waiting = node.ask(fetch_request(2, 1, node.quorum.log.shape.end_offset, 1, max_wait_ms=0))
    assert only(waiting).high_watermark == node.quorum.log.shape.end_offset == node.of(HighWatermarkMoved)[-1].offset


def test_a_fetch_with_nothing_to_say_waits_until_there_is_something() -> None:
    node = leader()
    node.commit()
    end = node.quorum.log.shape.end_offset
    assert node.ask(fetch_request(2, 1, end, 1, high_watermark=end)) is None
    token = node.tokens
    assert node.ask(fetch_request(3, 1, end, 1, high_watermark=end)) is None
    node.did(node.machine.appended(end + 1, node.now))
    assert node.answer_to(token) is not None and node.answer_to(token + 1) is not None
    assert node.of(ReplyRecords)[-1].offset == end


def test_a_new_high_watermark_is_news_enough() -> None:
    node = leader()
    node.commit()
    end = node.quorum.log.shape.end_offset
    assert only(node.ask(fetch_request(3, 1, end, 1, high_watermark=end - 1))).high_watermark == end


def test_a_long_poll_ends_with_its_time_and_with_the_leadership() -> None:
    node = leader()
    node.commit()
    end = node.quorum.log.shape.end_offset
    assert node.ask(fetch_request(2, 1, end, 1, high_watermark=end)) is None
    node.pass_time(500)
    assert only(node.answer_to(node.tokens)).error_code == 0
    assert node.ask(fetch_request(2, 1, end, 1, high_watermark=end)) is None
    node.did(node.machine.resign(node.now))
    assert only(node.answer_to(node.tokens)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_long_poll_of_an_observer_that_ends_has_what_is_not_committed_yet() -> None:
    node = leader()
    node.commit()
    end = node.quorum.log.shape.end_offset
    assert node.ask(fetch_request(9, 1, end, 1, high_watermark=end)) is None
    token = node.tokens
    node.did(node.machine.appended(end + 1, node.now))
    assert node.answer_to(token) is None
    node.pass_time(500)
    assert (node.of(ReplyRecords)[-1].token, node.of(ReplyRecords)[-1].offset) == (token, end)


def test_a_long_poll_whose_records_went_into_a_snapshot_ends_with_that() -> None:
    node = leader()
    node.commit()
    end = node.quorum.log.shape.end_offset
    assert node.ask(fetch_request(9, 1, end, 1, high_watermark=end)) is None
    node.did(node.machine.appended(end + 1, node.now))
    node.sync()
    token = node.tokens
    node.quorum.log.raise_high_watermark(end + 1)
    node.machine.snapshot_written(SnapshotId(end + 1, 1), 10)
    node.machine.log_cleaned(end + 1, [SnapshotId(end + 1, 1)])
    node.pass_time(500)
    given = only(node.answer_to(token)).snapshot_id
    assert (given.end_offset, given.epoch, node.of(ReplyRecords)) == (end + 1, 1, [])


def test_who_has_gone_is_not_answered() -> None:
    node = leader()
    node.commit()
    end = node.quorum.log.shape.end_offset
    node.ask(fetch_request(2, 1, end, 1, high_watermark=end))
    node.machine.abandon(node.tokens)  # type: ignore[arg-type]
    node.pass_time(600)
    assert node.answer_to(node.tokens) is None


def test_another_history_is_told_where_it_parts() -> None:
    node = Driver(shape=LogShape(end_offset=10, epochs=[(1, 0), (2, 5)]))
    node.elect()
    answer = only(node.ask(fetch_request(2, 3, 8, 1)))
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (1, 5)


@pytest.mark.parametrize("version", [4, 8, 11])
def test_a_fetch_too_old_to_be_told_more_gets_an_answer_that_can_be_written(version: int) -> None:
    node = Driver(shape=LogShape(end_offset=10, epochs=[(1, 0), (2, 5)]))
    node.elect()
    for last_epoch in (1, 3):
        answer = node.ask(fetch_request(-1, 3, 8, last_epoch, max_wait_ms=0), version)
        assert answer.encode(version)


def test_an_observer_hears_of_records_when_they_are_committed_and_a_voter_at_once() -> None:
    node = leader()
    node.commit()
    end = node.quorum.log.shape.end_offset
    assert node.ask(fetch_request(9, 1, end, 1, high_watermark=end)) is None
    observing = node.tokens
    node.did(node.machine.appended(end + 1, node.now))
    assert node.answer_to(observing) is None, "it could do nothing with them"
    assert node.ask(fetch_request(8, 1, end, 1, high_watermark=end)) is None
    late = node.tokens
    assert node.ask(fetch_request(3, 1, end, 1, high_watermark=end)) is not None
    node.commit()
    for token in (observing, late):
        assert only(node.answer_to(token)).high_watermark == end + 1
        assert [each.offset for each in node.of(ReplyRecords) if each.token == token] == [end]


def test_an_observer_without_what_is_committed_gets_all_that_there_is() -> None:
    node = leader()
    node.commit()
    end = node.quorum.log.shape.end_offset
    node.did(node.machine.appended(end + 1, node.now))
    assert only(node.ask(fetch_request(9, 1, 0, 0))).high_watermark == end
    assert node.of(ReplyRecords)[-1].offset == 0
