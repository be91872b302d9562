import pytest

from tests.unit.raft.driver import Driver, at, begin_request, disk, fetch_request, vote_request, voters
from tidelog.protocol.messages.fetch import FetchRequest
from tidelog.protocol.messages.vote import VoteRequest
from tidelog.raft import messages
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter


def test_a_raft_fetch_is_what_kafka_sends() -> None:
    node = Driver()
    node.follow(3)
    request = node.sends(FetchRequest)[2].request
    decoded = FetchRequest.decode(request.encode(18), 18)
    assert (decoded.cluster_id, decoded.max_wait_ms, decoded.min_bytes, decoded.max_bytes) == ("c", 500, 0, 1 << 20)
    assert (decoded.session_id, decoded.session_epoch, decoded.replica_state.replica_id) == (0, -1, 1)
    partition = decoded.topics[0].partitions[0]
    assert (partition.last_fetched_epoch, partition.log_start_offset, partition.high_watermark) == (0, -1, -1)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_votes_can_be_written_in_every_version(version: int) -> None:
    node = Driver()
    answer = node.ask(vote_request(2, 1), version=version)
    answer.encode(version)
    node.pass_time(4001)
    request = node.sends(VoteRequest)[2].request
    assert request.topics[0].partitions[0].pre_vote
    if version == 2:
        VoteRequest.decode(request.encode(version), version)
    else:
        with pytest.raises(ValueError, match="pre_vote"):
            request.encode(version)


@pytest.mark.parametrize("version", [12, 15, 17, 18])
def test_fetch_answers_can_be_written_in_every_version(version: int) -> None:
    node = Driver()
    node.follow(3)
    node.ask(fetch_request(3, 2, 0, 0), version=version).encode(version)


def test_only_the_metadata_partition_is_spoken_of() -> None:
    request = vote_request(2, 1)
    assert messages.only_partition(request) is not None
    request.topics[0].partitions[0].partition_index = 1
    assert messages.only_partition(request) is None
    request.topics = []
    assert messages.only_partition(request) is None


def test_a_node_with_two_listeners_tells_only_an_address_of_the_one_on_which_it_was_asked() -> None:
    """The leader's address on another listener would have the node that asks speak TLS to plain text, or the reverse."""
    secure = Endpoint("SECURE", "secure2", 9193)
    for known in ((at(2),), (secure,), (at(2), secure)):
        members = VoterSet.of([Voter(1, disk(1), (at(1),)), Voter(2, disk(2), known), Voter(3, disk(3), (at(3),))])
        node = Driver(members, endpoints=(at(1), Endpoint("SECURE", "secure1", 9193)), first_listener="SECURE")
        node.ask(begin_request(2, 1, secure))
        told = node.ask(vote_request(3, 1)).node_endpoints
        assert [each.host for each in told] == ([at(2).host] if at(2) in known else [])
    node = Driver(VoterSet.of([*voters(1, 3).voters, Voter(2, disk(2), (secure,))]))
    node.ask(begin_request(2, 1, secure))
    assert [each.host for each in node.ask(vote_request(3, 1)).node_endpoints] == ["secure2"]
