from tests.unit.raft.driver import at, disk
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.voters import ReplicaKey
from tidelog.records.control import Voter


def test_a_replica_says_of_itself_where_its_controller_listeners_are() -> None:
    config = RaftConfig(ReplicaKey(1, disk(1)), "c", (at(1),))
    assert config.voter == Voter(1, disk(1), (at(1),))
    assert config.listener == at(1).name
    assert RaftConfig(ReplicaKey(1, disk(1)), "c").listener == "CONTROLLER"
    assert config._replace(first_listener="SECURE").listener == "SECURE"
