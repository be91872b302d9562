import pytest

from tidelog.model.errors import ConfigError
from tidelog.model.ids import Uuid
from tidelog.raft.voters import ReplicaKey, VoterSet, parse_quorum_voters
from tidelog.records.control import Endpoint, Voter

DISK = Uuid(b"d" * 16)


def test_configured_voters_are_read_with_ipv6_and_sorted_by_id() -> None:
    voters = parse_quorum_voters("2@[::1]:9094, 1@localhost:9093")
    assert voters.ids == (1, 2)
    assert voters.voters[1].endpoints == (Endpoint("CONTROLLER", "::1", 9094),)


@pytest.mark.parametrize("text", ["1", "1@host", "x@host:1", "1@host:x", "1@:1", "1@h:70000", "1@a:1,1@b:2"])
def test_voters_that_make_no_sense_are_refused_with_what_was_read(text: str) -> None:
    with pytest.raises(ConfigError, match=r"controller\.quorum\.voters"):
        parse_quorum_voters(text)


def test_another_disk_is_another_voter_except_in_a_static_set() -> None:
    dynamic = VoterSet.of([Voter(1, DISK, ())])
    assert dynamic.find(ReplicaKey(1, DISK)) is not None
    assert dynamic.find(ReplicaKey(1, Uuid(b"e" * 16))) is None
    assert dynamic.find(ReplicaKey(2, DISK)) is None
    assert parse_quorum_voters("1@h:1").find(ReplicaKey(1, DISK)) is not None


def test_a_voter_may_move_to_other_endpoints() -> None:
    both = VoterSet.of([Voter(1, DISK, ()), Voter(2, DISK, ())])
    moved = both.updating(Voter(1, DISK, (Endpoint("C", "h", 5),)))
    assert moved is not None
    assert [voter.endpoints for voter in moved.voters] == [(Endpoint("C", "h", 5),), ()]
    assert both.updating(Voter(3, DISK, ())) is None
