import pytest

from tidelog.metadata.records import MetadataLogError
from tidelog.model.ids import Uuid
from tidelog.raft.node import RaftNode, Role, VoterHistory
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.voters import ReplicaKey, VoterSet, parse_quorum_voters
from tidelog.records.control import ControlType, Endpoint, Voter, parse_leader_change, parse_voters

DISK = Uuid(b"d" * 16)
ME = ReplicaKey(1, DISK)
HERE = (Endpoint("CONTROLLER", "h", 9093),)
ALONE = VoterSet.of([Voter(1, DISK, HERE)])


def raft(
    history: VoterHistory | None = None,
    *,
    configured: str = "1@h:9093",
    state: QuorumState | None = None,
    log_end: tuple[int, int] = (0, 0),
    endpoints: tuple[Endpoint, ...] = HERE,
) -> RaftNode:
    return RaftNode(
        ME,
        history=history or VoterHistory(),
        configured=parse_quorum_voters(configured),
        state=state,
        log_end=log_end,
        endpoints=endpoints,
    )


def test_the_only_voter_elects_itself_in_epoch_one_and_says_so_in_the_log() -> None:
    node = raft()
    outcome = node.start()
    assert outcome.persist == QuorumState(leader_id=1, leader_epoch=1, voters=(1,), version=0)
    assert [kind for kind, _ in outcome.append] == [ControlType.LEADER_CHANGE]
    change = parse_leader_change(outcome.append[0][1])
    assert (change.leader_id, change.version, [v.voter_id for v in change.voters]) == (1, 0, [1])
    assert node.role is Role.LEADER
    node.check()


@pytest.mark.parametrize(("epoch", "log_epoch", "next_epoch"), [(4, 4, 5), (3, 7, 8), (9, 2, 10)])
def test_each_start_has_an_epoch_above_all_that_were_seen(epoch: int, log_epoch: int, next_epoch: int) -> None:
    assert raft(state=QuorumState(1, epoch), log_end=(log_epoch, 100)).start().epoch == next_epoch


def test_the_first_leader_of_a_dynamic_quorum_brings_the_voters_into_the_log() -> None:
    outcome = raft(VoterHistory(1, ALONE, in_log=False), configured="").start()
    assert outcome.persist is not None
    assert (outcome.persist.version, outcome.persist.voters) == (1, ())
    assert [kind for kind, _ in outcome.append] == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]
    assert parse_voters(outcome.append[2][1]) == ALONE.voters


def test_later_leaders_write_the_voters_only_when_they_listen_elsewhere() -> None:
    history = VoterHistory(1, ALONE, in_log=True)
    assert [kind for kind, _ in raft(history, configured="").start().append] == [ControlType.LEADER_CHANGE]
    moved = raft(history, configured="", endpoints=(Endpoint("CONTROLLER", "h", 9999),)).start()
    assert [kind for kind, _ in moved.append] == [ControlType.LEADER_CHANGE, ControlType.KRAFT_VOTERS]
    assert parse_voters(moved.append[1][1])[0].endpoints[0].port == 9999
    assert [kind for kind, _ in raft(history, configured="", endpoints=()).start().append] == [ControlType.LEADER_CHANGE]


def test_committed_is_what_is_synced_once_the_epochs_own_first_record_is() -> None:
    node = raft(log_end=(1, 10), state=QuorumState(1, 1))
    node.start()
    assert node.synced(10) == 0
    assert node.synced(11) == 11
    assert node.synced(15) == 15
    with pytest.raises(AssertionError):
        node.synced(14)


@pytest.mark.parametrize(
    ("history", "configured", "says"),
    [
        (VoterHistory(), "2@h:1", "has no voter node 1"),
        (VoterHistory(), "1@h:1,2@h:2", "voters 1, 2, and this node serves a quorum of one"),
        (VoterHistory(1, VoterSet.of([Voter(1, b"e" * 16, ())]), True), "", "has no voter node 1 with directory id ZGRkZ"),
        (VoterHistory(1, VoterSet.of([*ALONE.voters, Voter(2, DISK, ())]), True), "", "remove-controller"),
    ],
)
def test_who_is_not_the_only_voter_does_not_lead(history: VoterHistory, configured: str, says: str) -> None:
    with pytest.raises(MetadataLogError, match=says):
        raft(history, configured=configured)


def test_nobody_starts_twice() -> None:
    node = raft()
    node.start()
    with pytest.raises(AssertionError):
        node.start()
