from tests.unit.raft.driver import Driver, at, begin_request, disk, fetch_answer, vote_answer, voters
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import begin_quorum_epoch as begin
from tidelog.protocol.messages import fetch
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest
from tidelog.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from tidelog.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tidelog.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from tidelog.protocol.messages.vote import VoteRequest
from tidelog.raft.effects import Send
from tidelog.raft.election import Role
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter


def test_a_leader_that_is_silent_for_the_fetch_timeout_is_asked_about_first() -> None:
    node = Driver()
    node.follow(2)
    node.pass_time(1999)
    assert node.machine.role is Role.FOLLOWER
    node.pass_time(1)
    assert node.machine.role is Role.PROSPECTIVE
    asked = node.sends(VoteRequest)
    assert sorted(asked) == [2, 3]
    partition = asked[3].request.topics[0].partitions[0]
    assert (partition.pre_vote, partition.replica_epoch) == (True, 2)
    assert node.machine.epoch == 2, "a pre-vote raises no epoch"
    node.answer(asked[3], vote_answer(2, granted=False))
    node.answer(asked[2], vote_answer(2, granted=False))
    assert (node.machine.role, node.machine.leader_id) == (Role.FOLLOWER, 2)


def test_an_election_is_won_by_a_majority_and_everybody_is_told() -> None:
    node = Driver()
    node.elect()
    assert node.machine.epoch == 1
    assert sorted(node.sends(BeginQuorumEpochRequest)) == [2, 3]
    assert node.persisted is not None and node.persisted.leader_id == 1


def test_a_lost_election_is_followed_by_a_pause_and_another_pre_vote() -> None:
    node = Driver()
    node.pass_time(2001)
    node.answer(node.sends(VoteRequest)[2], vote_answer(0, granted=True))
    assert node.machine.role is Role.CANDIDATE
    for voter in (2, 3):
        node.answer(node.sends(VoteRequest)[voter], vote_answer(1, granted=False))
    node.pass_time(node.config.election_backoff_max_ms)
    assert (node.machine.role, node.machine.epoch) == (Role.PROSPECTIVE, 1)


def test_a_voter_that_knows_no_pre_vote_is_asked_for_a_vote() -> None:
    node = Driver()
    node.pass_time(2001)
    node.did(node.machine.failed(node.sends(VoteRequest)[2].request_id, node.now, unsupported=True))
    assert (node.machine.role, node.machine.epoch) == (Role.CANDIDATE, 1)


def test_without_a_quorum_the_leader_resigns_and_comes_back_in_another_epoch() -> None:
    node = Driver()
    node.elect()
    node.pass_time(3000)
    assert node.machine.role is Role.RESIGNED
    assert sorted(node.sends(EndQuorumEpochRequest)) == [2, 3]
    node.pass_time(2001)
    assert (node.machine.role, node.machine.epoch) == (Role.PROSPECTIVE, 2)


def test_a_leader_that_stops_hands_over_and_has_stopped_when_all_know() -> None:
    node = Driver()
    node.elect()
    node.did(node.machine.shut_down(node.now, 5000))
    assert node.machine.role is Role.RESIGNED and not node.machine.stopped
    for voter in (2, 3):
        answer = node.sends(EndQuorumEpochRequest)[voter]
        from tidelog.protocol.messages import end_quorum_epoch as end

        partition = end.ResponsePartitionData(0, 0, -1, 1)
        node.answer(answer, end.EndQuorumEpochResponse(0, [end.ResponseTopicData("__cluster_metadata", [partition])]))
    assert node.machine.stopped
    follower = Driver()
    follower.follow()
    follower.did(follower.machine.shut_down(follower.now, 5000))
    assert follower.machine.stopped
    follower.pass_time(10_000)
    assert follower.machine.role is Role.FOLLOWER, "who stops calls for no election"


def test_a_leader_that_stops_does_not_wait_for_voters_at_whose_address_nobody_listens() -> None:
    node = Driver()
    node.elect()
    node.did(node.machine.shut_down(node.now, 5000))
    for voter in (2, 3):
        assert not node.machine.stopped
        node.did(node.machine.failed(node.sends(EndQuorumEpochRequest)[voter].request_id, node.now, refused=True))
    assert node.machine.stopped


def test_a_leader_that_stops_tries_again_where_a_connection_broke() -> None:
    node = Driver()
    node.elect()
    node.did(node.machine.shut_down(node.now, 5000))
    for voter in (2, 3):
        node.did(node.machine.failed(node.sends(EndQuorumEpochRequest)[voter].request_id, node.now))
    assert not node.machine.stopped


def test_an_observer_asks_around_who_leads_and_never_campaigns() -> None:
    node = Driver(VoterSet(()), level=0, bootstrap=(("a", 1), ("b", 2)))
    first = node.sends(fetch.FetchRequest)
    assert len(first) == 1 and min(first) < -1
    (place,) = first.values()
    node.answer(place, fetch_answer(2, 5, error_code=ErrorCode.FENCED_LEADER_EPOCH))
    assert (node.machine.role, node.machine.epoch, node.machine.leader_id) == (Role.FOLLOWER, 5, 2)
    assert 2 in node.sends(fetch.FetchRequest)
    node.pass_time(60_000)
    assert node.machine.role is Role.FOLLOWER
    assert len(node.sends(fetch.FetchRequest)) > 2, "it asks the others again"


def test_where_nobody_listens_the_leader_is_not_waited_for() -> None:
    node = Driver()
    node.follow(1)
    node.did(node.machine.failed(node.sends(fetch.FetchRequest)[2].request_id, node.now, refused=True))
    node.pass_time(150)
    assert node.machine.role is Role.PROSPECTIVE


def test_a_pre_vote_that_cannot_be_won_without_a_dead_voter_is_given_up_at_once() -> None:
    node = Driver()
    node.follow(1)
    node.pass_time(2000)
    asked = node.sends(VoteRequest)
    node.answer(asked[3], vote_answer(1, granted=False))
    assert node.machine.role is Role.PROSPECTIVE
    node.did(node.machine.failed(asked[2].request_id, node.now, refused=True))
    assert node.machine.role is Role.FOLLOWER


def test_a_voter_that_moved_says_so_after_a_while() -> None:
    moved = VoterSet.of([Voter(1, bytes([1]) * 16, (Endpoint("CONTROLLER", "old", 1),)), *voters(2, 3).voters])
    node = Driver(moved)
    node.follow()
    node.answer(node.sends(fetch.FetchRequest)[2], fetch_answer(2, 1, high_watermark=0))
    assert node.sends(UpdateRaftVoterRequest) == {}
    for _ in range(3):
        node.now += 900
        node.answer(node.sends(fetch.FetchRequest)[2], fetch_answer(2, 1, high_watermark=0))
    assert 2 in node.sends(UpdateRaftVoterRequest)


def test_a_controller_may_join_by_itself_and_its_earlier_disk_goes_first() -> None:
    def joined(members: VoterSet) -> Driver:
        node = Driver(members, auto_join=True)
        node.follow()
        for _ in range(3):
            node.now += 900
            node.answer(node.sends(fetch.FetchRequest)[2], fetch_answer(2, 1, high_watermark=0))
        return node

    request = joined(voters(2, 3)).sends(AddRaftVoterRequest)[2].request
    assert (request.voter_id, request.ack_when_committed) == (1, False)
    other_disk = VoterSet.of([Voter(1, b"z" * 16, ()), *voters(2, 3).voters])
    assert joined(other_disk).sends(RemoveRaftVoterRequest)[2].request.voter_directory_id == b"z" * 16


def test_who_wants_to_join_asks_between_two_fetches_when_one_is_parked_at_the_time() -> None:
    node = Driver(voters(2, 3), auto_join=True)
    node.follow()
    for _ in range(3):
        # The leader holds each fetch for most of the time: it is under way when the voter set is due to be looked at.
        fetch_sent = node.sends(fetch.FetchRequest)[2]
        node.pass_time(1100)
        node.answer(fetch_sent, fetch_answer(2, 1, high_watermark=0))
    assert 2 in node.sends(AddRaftVoterRequest)


def test_while_listeners_change_each_node_reaches_the_others_on_its_own_first_one() -> None:
    """As in a rolling move of the quorum to TLS: nodes have both listeners, and those that were restarted use the other one."""

    def secure(node_id: int) -> Endpoint:
        return Endpoint("SECURE", f"secure{node_id}", 9193)

    both = VoterSet.of([Voter(each, disk(each), (at(each), secure(each))) for each in (1, 2, 3)])
    node = Driver(both, endpoints=(at(1), secure(1)), first_listener="SECURE")
    request = begin_request(2, 1)
    request.leader_endpoints.append(begin.LeaderEndpoint("SECURE", "secure2", 9193))
    node.ask(request)
    assert node.sends(fetch.FetchRequest)[2].to.host == "secure2"
    node.pass_time(4001)
    assert {each.to.host for each in node.sends(VoteRequest).values()} == {"secure2", "secure3"}
    assert {each.to.host for each in _asked_for_votes(Driver(both)).values()} == {at(2).host, at(3).host}


def _asked_for_votes(node: Driver) -> dict[int, Send]:
    node.pass_time(2001)
    return node.sends(VoteRequest)
