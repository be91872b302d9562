import pytest

from tests.unit.raft.driver import Driver, fetch_request, voters
from tidelog.broker.refusals import first_error
from tidelog.model.errors import ErrorCode
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.raft.effects import HighWatermarkMoved, LeaderChanged
from tidelog.raft.machine import HANDLERS
from tidelog.raft.snapshots import SnapshotId


def test_a_quorum_of_one_waits_for_no_timer() -> None:
    node = Driver(voters(1))
    assert node.machine.is_leader and node.now == 10_000
    assert node.of(LeaderChanged)[-1] == LeaderChanged(1, 1, 0)
    node.sync()
    assert node.of(HighWatermarkMoved)[-1].offset == node.quorum.log.shape.end_offset


def test_what_the_controller_appends_is_committed_when_a_majority_has_it() -> None:
    node = Driver()
    node.elect()
    node.commit()
    end = node.machine.high_watermark
    node.did(node.machine.appended(end + 2, node.now))
    node.sync()
    assert node.machine.high_watermark == end
    node.ask(fetch_request(2, 1, end + 2, 1, max_wait_ms=0))
    assert node.machine.high_watermark == end + 2


def test_only_a_leader_appends() -> None:
    with pytest.raises(AssertionError):
        Driver().machine.appended(1, 10_000)


def test_a_snapshot_of_ones_own_lets_the_log_begin_later() -> None:
    node = Driver(voters(1))
    node.sync()
    end = node.machine.high_watermark
    node.machine.snapshot_written(SnapshotId(end, 1), 100)
    node.machine.log_cleaned(end, [SnapshotId(end, 1)])
    assert node.quorum.log.shape.start_offset == end
    assert node.quorum.log.shape.newest_snapshot == SnapshotId(end, 1)
    node.machine.check()


def test_a_damaged_snapshot_is_fetched_again() -> None:
    node = Driver()
    node.follow()
    node.quorum.log.install(SnapshotId(9, 1), 100)
    node.did(node.machine.snapshot_refused(node.now))
    assert not node.quorum.log.installing


def test_every_raft_api_has_its_handler() -> None:
    assert {ApiKey.VOTE, ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT, ApiKey.UPDATE_RAFT_VOTER} <= set(HANDLERS)


@pytest.mark.parametrize("key", HANDLERS, ids=lambda key: ApiKey(key).name)
def test_an_empty_request_is_refused_and_harms_nothing(key: ApiKey) -> None:
    """CVE-2026-83525: a FetchSnapshot without topics must not end the controller."""
    request = registry.request_class(key)
    for version in range(request.MIN_VERSION, request.MAX_VERSION + 1):
        node = Driver(voters(1))
        answer = node.ask(request(), version)
        assert answer is not None and first_error(answer) is not ErrorCode.NONE
        answer.encode(version)
        assert node.machine.is_leader
