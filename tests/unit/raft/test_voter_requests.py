import pytest

from tests.unit.raft.driver import Driver, at, begin_request, disk, end_request, fetch_answer, only, vote_request
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.fetch import FetchRequest, SnapshotId
from tidelog.raft.effects import Persist, Reply
from tidelog.raft.election import LAST_EPOCH, MANY_EPOCHS, Role
from tidelog.raft.log_shape import LogEnd, LogShape
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.voters import ReplicaKey


def test_a_vote_is_on_disk_before_the_answer_leaves() -> None:
    node = Driver()
    answer = only(node.ask(vote_request(2, 3)))
    assert (answer.vote_granted, answer.leader_epoch, answer.error_code) == (True, 3, 0)
    assert node.persisted == QuorumState(-1, 3, 2, disk(2), version=1)
    kinds = [type(each) for each in node.done if isinstance(each, (Persist, Reply))]
    assert kinds.index(Persist) < kinds.index(Reply) and kinds[-1] is Reply
    assert not only(node.ask(vote_request(3, 3))).vote_granted
    assert only(node.ask(vote_request(2, 3))).vote_granted, "asked again, it says the same"


def test_a_voter_that_lost_records_votes_only_for_a_candidate_that_has_as_many() -> None:
    node = Driver(shape=LogShape(end_offset=4, epochs=[(2, 0)]), lost_end=LogEnd(2, 10))
    assert not only(node.ask(vote_request(2, 5, (2, 9)))).vote_granted
    assert not only(node.ask(vote_request(2, 5, (2, 9), pre_vote=True))).vote_granted
    assert only(node.ask(vote_request(3, 5, (2, 10)))).vote_granted


def without_records_of_its_own_epoch(leader: int = -1) -> Driver:
    """It lost the records 90 to 99, the last of them of epoch 5, in which it still is; the others never had those."""
    return Driver(
        shape=LogShape(end_offset=90, epochs=[(4, 0)]),
        state=QuorumState(leader, 5, version=1),
        lost_end=LogEnd(5, 100),
        witnesses=(ReplicaKey(2, disk(2)), ReplicaKey(3, disk(3))),
    )


def test_a_voter_that_lost_what_no_other_has_votes_for_the_longest_log_once_all_have_asked() -> None:
    node = without_records_of_its_own_epoch()
    assert not only(node.ask(vote_request(2, 5, (4, 96), pre_vote=True))).vote_granted
    assert node.machine.epoch == 5
    answer = only(node.ask(vote_request(3, 5, (4, 95), pre_vote=True)))
    assert (answer.error_code, answer.leader_epoch, answer.vote_granted) == (ErrorCode.FENCED_LEADER_EPOCH, 6, False)
    assert not only(node.ask(vote_request(2, 6, (4, 96), pre_vote=True))).vote_granted
    assert not only(node.ask(vote_request(3, 6, (4, 95), pre_vote=True))).vote_granted, "the other one has more"
    assert only(node.ask(vote_request(2, 6, (4, 96), pre_vote=True))).vote_granted
    assert only(node.ask(vote_request(2, 7, (4, 96)))).vote_granted
    for _ in range(5):
        node.pass_time(3000)
    assert node.machine.role is not Role.PROSPECTIVE, "it does not lead itself before it has the records"


def test_a_voter_that_lost_records_and_hears_its_leader_starts_no_epoch() -> None:
    node = without_records_of_its_own_epoch(leader=2)
    node.ask(vote_request(2, 5, (4, 96), pre_vote=True))
    node.answer(node.sends(FetchRequest)[2], fetch_answer(2, 5, high_watermark=1, snapshot_id=SnapshotId(99, 4)))
    answer = only(node.ask(vote_request(3, 5, (4, 95), pre_vote=True)))
    assert (answer.leader_epoch, answer.vote_granted) == (5, False)


def test_a_candidate_with_a_shorter_log_gets_no_vote_but_its_epoch() -> None:
    node = Driver(shape=LogShape(end_offset=10, epochs=[(2, 0)]))
    assert not only(node.ask(vote_request(2, 5, (2, 9)))).vote_granted
    assert node.machine.epoch == 5
    assert not only(node.ask(vote_request(2, 6, (1, 99)))).vote_granted
    assert only(node.ask(vote_request(3, 6, (2, 10)))).vote_granted


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote_request(2, 3), ErrorCode.FENCED_LEADER_EPOCH),
        (vote_request(2, 6, (6, 3)), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 6, (0, -1)), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 6, (7, 0), pre_vote=True), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 6, to=9), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_votes_that_cannot_be_are_refused_with_the_reason(request_: object, error: ErrorCode) -> None:
    node = Driver(state=QuorumState(-1, 5, version=1))
    answer = only(node.ask(request_))
    assert (answer.error_code, answer.vote_granted) == (error, False)


def test_a_request_of_another_cluster_or_topic_is_refused_whole() -> None:
    node = Driver()
    assert node.ask(vote_request(2, 1, cluster="other")).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert only(node.ask(vote_request(2, 1, cluster=None))).vote_granted
    stray = vote_request(2, 1)
    stray.topics[0].topic_name = "t"
    assert node.ask(stray).error_code == ErrorCode.INVALID_REQUEST


def test_a_pre_vote_changes_nothing() -> None:
    node = Driver(state=QuorumState(-1, 5, version=1))
    assert only(node.ask(vote_request(2, 5, (5, 0), pre_vote=True))).vote_granted
    assert only(node.ask(vote_request(3, 5, (5, 0), pre_vote=True))).vote_granted
    assert (node.machine.epoch, node.persisted) == (5, None)


def test_the_leader_of_an_epoch_is_followed_and_told_with_its_endpoint() -> None:
    node = Driver()
    answer = node.ask(begin_request(2, 4))
    assert (only(answer).leader_id, only(answer).leader_epoch) == (2, 4)
    assert (answer.node_endpoints[0].host, answer.node_endpoints[0].port) == (at(2).host, at(2).port)
    assert node.ask(begin_request(2, 4), version=0).node_endpoints == []
    assert node.machine.role is Role.FOLLOWER
    assert node.persisted is not None and node.persisted.leader_id == 2
    assert only(node.ask(begin_request(3, 3))).error_code == ErrorCode.FENCED_LEADER_EPOCH
    node.ask(begin_request(3, 4))
    assert node.machine.leader_id == 2, "an epoch has one leader"
    assert not only(node.ask(vote_request(3, 4))).vote_granted
    wrong = begin_request(2, 4)
    wrong.topics[0].partitions[0].voter_directory_id = Uuid(b"x" * 16)
    assert only(node.ask(wrong)).error_code == ErrorCode.INVALID_VOTER_KEY


def test_the_first_successor_calls_for_an_election_at_once_and_the_others_later() -> None:
    first = Driver()
    first.follow(1)
    first.ask(end_request(2, 1, (1, 3)))
    assert first.machine.role is Role.PROSPECTIVE
    last = Driver()
    last.follow(1)
    last.ask(end_request(2, 1, (3, 1)))
    assert last.machine.role is Role.FOLLOWER
    last.pass_time(last.config.election_backoff_max_ms)
    assert last.machine.role is Role.PROSPECTIVE
    stranger = Driver()
    stranger.follow(1)
    assert only(stranger.ask(end_request(3, 0, ()))).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert stranger.machine.role is Role.FOLLOWER


@pytest.mark.parametrize("epoch", [LAST_EPOCH, LAST_EPOCH - 1, MANY_EPOCHS + 1])
def test_nobody_is_moved_to_an_epoch_after_which_no_election_could_be_held(epoch: int) -> None:
    node = Driver(state=QuorumState(-1, 5, version=1))
    for wild in (vote_request(2, epoch), begin_request(2, epoch), end_request(2, epoch, (1, 3))):
        assert only(node.ask(wild)).error_code == ErrorCode.INVALID_REQUEST
    assert (node.machine.epoch, node.persisted) == (5, None)
    old = Driver(state=QuorumState(-1, MANY_EPOCHS, version=1))
    assert only(old.ask(vote_request(2, MANY_EPOCHS + 1))).vote_granted, "whoever is close is believed"


def test_in_the_last_epoch_nobody_calls_for_an_election() -> None:
    node = Driver(state=QuorumState(-1, LAST_EPOCH, version=1))
    node.pass_time(60_000)
    assert (node.machine.role, node.machine.epoch) == (Role.UNATTACHED, LAST_EPOCH)
