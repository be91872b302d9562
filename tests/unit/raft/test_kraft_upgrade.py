from tests.unit.raft.driver import CLUSTER, Driver, at, disk, voters
from tests.unit.raft.test_voter_changes import add, catch_up, leader, versions
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.api_versions import ApiVersionsRequest
from tidelog.protocol.messages.update_raft_voter import KRaftVersionFeature, Listener, UpdateRaftVoterRequest
from tidelog.raft.effects import AppendControl
from tidelog.raft.kraft_upgrade import upgrade_refusal
from tidelog.records.control import ControlType


def static() -> Driver:
    return leader(members=voters(1, 2, 3, dynamic=False), level=0)


def introduce(node: Driver, voter: int, high: int = 1) -> int:
    where = at(voter)
    listeners = [Listener(where.name, where.host, where.port)]
    told = UpdateRaftVoterRequest(CLUSTER, node.machine.epoch, voter, disk(voter), listeners, KRaftVersionFeature(0, high))
    return int(node.ask(told).error_code)


def test_when_all_static_voters_have_introduced_themselves_level_and_voters_go_to_the_log_in_one_batch() -> None:
    node = static()
    assert introduce(node, 2) == 0
    refusal = upgrade_refusal(node.quorum)
    assert refusal is not None and refusal.endswith("not all of the voters support it: nothing is known of 3")
    assert introduce(node, 3) == 0
    assert upgrade_refusal(node.quorum) is None
    node.did(node.machine.upgrade_kraft_version(node.now))
    written = node.of(AppendControl)[-1].records
    assert [kind for kind, _ in written] == [ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    assert (node.machine.kraft_version, node.machine.voters) == (1, voters(1, 2, 3))
    count = len(node.of(AppendControl))
    node.did(node.machine.upgrade_kraft_version(node.now))
    assert len(node.of(AppendControl)) == count, "it is there already"


def test_a_voter_that_does_not_support_it_keeps_it_from_coming() -> None:
    node = static()
    introduce(node, 2)
    introduce(node, 3, high=0)
    refusal = upgrade_refusal(node.quorum)
    assert refusal is not None and refusal.endswith("not all of the voters support it: 3 (0 to 0)")


def test_a_controller_without_a_listener_is_not_made_a_voter_that_no_other_can_reach() -> None:
    node = Driver(voters(1, dynamic=False), level=0, endpoints=())
    node.pass_time(2_001)
    node.commit()
    refusal = upgrade_refusal(node.quorum)
    assert refusal is not None and "controller 1 has no listener" in refusal and "controller.listener.names" in refusal


def test_what_was_heard_in_an_earlier_epoch_does_not_count() -> None:
    node = static()
    introduce(node, 2)
    introduce(node, 3)
    node.follow(epoch=node.machine.epoch + 1)
    node.elect()
    node.commit()
    assert upgrade_refusal(node.quorum) is not None


def test_until_something_of_the_epoch_is_committed_it_has_to_wait() -> None:
    node = Driver(voters(1, 2, 3, dynamic=False), level=0)
    node.elect()
    refusal = upgrade_refusal(node.quorum)
    assert refusal is not None and "has not committed anything in its epoch yet" in refusal


def test_afterwards_voters_come_and_are_counted_by_their_disks() -> None:
    node = static()
    introduce(node, 2)
    introduce(node, 3)
    node.did(node.machine.upgrade_kraft_version(node.now))
    node.commit()
    assert node.machine.high_watermark == node.quorum.log.shape.end_offset
    catch_up(node, 4)
    node.ask(add(4))
    node.answer(node.sends(ApiVersionsRequest)[4], versions())
    assert node.machine.voters.ids == (1, 2, 3, 4)


def test_a_truncation_takes_the_upgrade_back() -> None:
    node = static()
    before = node.quorum.log.shape.end_offset
    introduce(node, 2)
    introduce(node, 3)
    node.did(node.machine.upgrade_kraft_version(node.now))
    node.follow(epoch=node.machine.epoch + 1)
    node.quorum.log.truncate(before, 2, 1)
    assert (node.machine.kraft_version, node.machine.voters) == (0, voters(1, 2, 3, dynamic=False))
    assert node.ask(add(4)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
