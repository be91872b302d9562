from tests.unit.raft.driver import Driver, fetch_answer, vote_answer
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import fetch
from tidelog.protocol.messages.vote import VoteRequest
from tidelog.raft.election import LAST_EPOCH, Role
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.responses import error_of


def test_an_answer_from_a_higher_epoch_is_moved_to() -> None:
    node = Driver()
    node.pass_time(2001)
    node.answer(node.sends(VoteRequest)[2], vote_answer(7, granted=False, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert (node.machine.role, node.machine.epoch) == (Role.UNATTACHED, 7)
    assert node.persisted is not None and node.persisted.leader_epoch == 7


def test_an_answer_that_names_the_leader_makes_a_follower() -> None:
    node = Driver()
    node.pass_time(2001)
    node.answer(node.sends(VoteRequest)[2], vote_answer(4, granted=False, leader=3))
    assert (node.machine.role, node.machine.leader_id) == (Role.FOLLOWER, 3)


def test_a_late_answer_is_old_news() -> None:
    node = Driver()
    node.pass_time(2001)
    asked = node.sends(VoteRequest)
    node.follow(5)
    node.answer(asked[2], vote_answer(0, granted=True))
    node.answer(asked[3], vote_answer(0, granted=True))
    assert (node.machine.role, node.machine.epoch) == (Role.FOLLOWER, 5)


def test_a_leader_that_was_known_without_its_place_is_found_again() -> None:
    """After a restart of a replica that does not know the voters."""
    node = Driver(state=QuorumState(9, 5, version=1), bootstrap=(("a", 1),))
    assert (node.machine.role, node.machine.leader_id) == (Role.UNATTACHED, 9)
    (place,) = node.sends(fetch.FetchRequest).values()
    node.answer(place, fetch_answer(9, 5, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert (node.machine.role, node.machine.leader_id) == (Role.FOLLOWER, 9)


def test_who_answers_nonsense_is_left_alone_for_a_moment() -> None:
    node = Driver()
    node.follow()
    asked = node.sends(fetch.FetchRequest)[2]
    node.answer(asked, fetch.FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
    assert node.sends(fetch.FetchRequest)[2] is asked
    node.pass_time(20)
    assert node.sends(fetch.FetchRequest)[2] is not asked


def test_an_unknown_number_is_an_error() -> None:
    assert error_of(9999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_answer_from_an_epoch_that_cannot_be_is_of_no_use() -> None:
    node = Driver()
    node.pass_time(2001)
    node.answer(node.sends(VoteRequest)[2], vote_answer(LAST_EPOCH, granted=False, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert node.machine.epoch == 0
