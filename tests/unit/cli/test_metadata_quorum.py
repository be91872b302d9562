"""The quorum as it is shown."""

import json

from tidelog.cli.metadata_quorum import _print_replication, _replica
from tidelog.model.ids import uuid_to_text
from tidelog.protocol.messages.describe_quorum import Listener, Node, ReplicaState, ResponsePartitionData

DIRECTORY = bytes(range(16))


def test_voters_show_their_directory_and_endpoints_where_they_are_known():
    nodes = [Node(node_id=1, listeners=[Listener(name="CONTROLLER", host="h", port=9093)])]
    named = {"id": 1, "directoryId": uuid_to_text(DIRECTORY), "endpoints": ["CONTROLLER://h:9093"]}
    assert _replica(ReplicaState(replica_id=1, replica_directory_id=DIRECTORY), nodes) == named
    assert _replica(ReplicaState(replica_id=1), nodes) == {"id": 1}


def test_the_leader_comes_first_and_lag_is_behind_it(capsys):
    voters = [ReplicaState(replica_id=1, log_end_offset=7), ReplicaState(replica_id=2, log_end_offset=10)]
    observers = [ReplicaState(replica_id=3, log_end_offset=4, last_fetch_timestamp=900)]
    _print_replication(ResponsePartitionData(leader_id=2, current_voters=voters, observers=observers), 1000, "table")
    rows = [[text.strip() for text in line.split("\t")] for line in capsys.readouterr().out.splitlines()]
    assert [(row[0], row[3], row[6]) for row in rows[1:]] == [
        ("2", "0", "Leader"),
        ("1", "3", "Follower"),
        ("3", "6", "Observer"),
    ]
    assert rows[3][4] == "100 ms ago"


def test_for_programs_numbers_are_numbers(capsys):
    voters = [ReplicaState(replica_id=2, log_end_offset=10, last_fetch_timestamp=900)]
    _print_replication(ResponsePartitionData(leader_id=2, current_voters=voters), None, "json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["NodeId"], row["Lag"], row["LastFetchTimestamp"], row["Status"]) == (2, 0, 900, "Leader")
    _print_replication(ResponsePartitionData(leader_id=2, current_voters=voters), 1000, "json")
    (row,) = json.loads(capsys.readouterr().out)
    assert row["LastFetchTimestamp"] == "100 ms ago"
