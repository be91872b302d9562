import pytest

from tests.unit.raft.driver import Driver, at, disk, voters
from tidelog.protocol.messages.vote import VoteRequest
from tidelog.raft.effects import AppendControl
from tidelog.raft.election import Role
from tidelog.raft.log_shape import LogEnd, LogShape
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.voters import VoterSet
from tidelog.records.control import ControlType, Endpoint, Voter, parse_leader_change, parse_voters


@pytest.mark.parametrize(
    ("state", "role", "epoch"),
    [
        (None, Role.UNATTACHED, 2),
        (QuorumState(1, 5, version=1), Role.RESIGNED, 5),
        (QuorumState(2, 5, version=1), Role.FOLLOWER, 5),
        (QuorumState(-1, 5, 1, disk(1), version=1), Role.CANDIDATE, 5),
        (QuorumState(-1, 5, 3, disk(3), version=1), Role.UNATTACHED, 5),
        (QuorumState(2, 1, version=1), Role.UNATTACHED, 2),
    ],
    ids=["nothing", "it led", "it followed", "it voted for itself", "it voted for 3", "older than the log"],
)
def test_a_replica_starts_as_what_it_was(state: QuorumState | None, role: Role, epoch: int) -> None:
    node = Driver(shape=LogShape(end_offset=5, epochs=[(2, 0)]), state=state)
    assert (node.machine.role, node.machine.epoch) == (role, epoch)


@pytest.mark.parametrize("state", [None, QuorumState(-1, 5, 1, disk(1), version=1), QuorumState(1, 5, version=1)])
def test_a_voter_that_lost_records_does_not_campaign_before_it_has_as_many_again(state: QuorumState | None) -> None:
    node = Driver(shape=LogShape(end_offset=4, epochs=[(2, 0)]), state=state, lost_end=LogEnd(2, 10))
    for _ in range(20):
        node.pass_time(3000)
    assert (node.machine.role, node.sends(VoteRequest)) == (Role.UNATTACHED, {})
    node.quorum.log.shape.append(6, 4, 5)
    for _ in range(3):
        node.pass_time(3000)
    assert node.machine.role is Role.PROSPECTIVE


def test_who_led_alone_leads_again_at_once_in_another_epoch() -> None:
    node = Driver(voters(1), state=QuorumState(1, 5, version=1), shape=LogShape(end_offset=5, epochs=[(5, 0)]))
    assert (node.machine.role, node.machine.epoch) == (Role.LEADER, 6)
    node.sync()
    assert node.machine.high_watermark == node.quorum.log.shape.end_offset


def first_records(node: Driver) -> dict[ControlType, bytes]:
    return dict(node.of(AppendControl)[0].records)


def test_the_first_leader_brings_the_voters_into_the_log_and_later_ones_what_has_changed() -> None:
    first = first_records(Driver(voters(1)))
    assert list(first) == [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    change = parse_leader_change(first[ControlType.LEADER_CHANGE])
    assert (change.leader_id, [each.voter_id for each in change.granting_voters], change.version) == (1, [1], 0)
    assert list(first_records(Driver(voters(1), said_at=3, shape=LogShape(end_offset=5, epochs=[(1, 0)])))) == [
        ControlType.LEADER_CHANGE
    ]
    elsewhere = VoterSet.of([Voter(1, disk(1), (Endpoint("CONTROLLER", "old", 1),))])
    moved = first_records(Driver(elsewhere, said_at=3, shape=LogShape(end_offset=5, epochs=[(1, 0)])))
    assert parse_voters(moved[ControlType.KRAFT_VOTERS])[0].endpoints == (at(1),)
    static = Driver(voters(1, dynamic=False), level=0)
    assert list(first_records(static)) == [ControlType.LEADER_CHANGE]
    assert static.persisted == QuorumState(1, 1, voters=(1,), version=0)


def test_a_replica_that_an_uncommitted_change_removes_may_be_needed_to_commit_it() -> None:
    node = Driver(voters(1, 2))
    node.quorum.log._sets.note_voters(7, voters(2))
    assert not node.quorum.is_voter and node.quorum.may_campaign
    node.quorum.log._high_watermark = 8
    assert not node.quorum.may_campaign


def test_calling_for_elections_again_and_again_does_not_put_off_anybody_elses() -> None:
    from tests.unit.raft.driver import vote_request

    node = Driver(shape=LogShape(end_offset=5, epochs=[(1, 0)]))
    deadline = node.quorum.state.deadline_ms
    for epoch in range(2, 6):
        node.now += 100
        node.ask(vote_request(2, epoch))
    assert node.quorum.state.deadline_ms <= deadline


def test_the_story_tells_what_happened() -> None:
    node = Driver()
    node.elect()
    assert [each.split(": ")[1].split(" ")[0] for each in node.quorum.story] == ["prospective", "candidate", "leader"]
