"""The quorum as it is shown."""

import json

import pytest
from click.testing import CliRunner

from tidelog.cli.tools.metadata_quorum import _print_replication, _print_status, _replica, command
from tidelog.model.ids import uuid_to_text
from tidelog.protocol.messages.describe_quorum import Listener, Node, ReplicaState, ResponsePartitionData

DIRECTORY = bytes(range(16))


def test_voters_show_their_directory_and_endpoints_where_they_are_known():
    nodes = [Node(node_id=1, listeners=[Listener(name="CONTROLLER", host="h", port=9093)])]
    named = {"id": 1, "directoryId": uuid_to_text(DIRECTORY), "endpoints": ["CONTROLLER://h:9093"]}
    assert _replica(ReplicaState(replica_id=1, replica_directory_id=DIRECTORY), nodes) == named
    assert _replica(ReplicaState(replica_id=1), nodes) == {"id": 1, "endpoints": ["CONTROLLER://h:9093"]}
    assert _replica(ReplicaState(replica_id=2), nodes) == {"id": 2}


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


@pytest.mark.parametrize(("leader", "time"), [(1, 0), (2, 500)])
def test_the_lag_is_that_of_the_first_voter_with_the_least(capsys, leader, time):
    """As Apache Kafka's tool shows idle quorums: no time behind when the first voter leads, else that of the first voter."""
    voters = [
        ReplicaState(replica_id=1, log_end_offset=7, last_caught_up_timestamp=1000),
        ReplicaState(replica_id=2, log_end_offset=7, last_caught_up_timestamp=1500),
    ]
    _print_status("abc", ResponsePartitionData(leader_id=leader, current_voters=voters), [], "table")
    lines = capsys.readouterr().out.splitlines()
    assert f"MaxFollowerLagTimeMs:   {time}" in lines
    assert "MaxFollowerLag:         0" in lines


def test_a_voter_that_was_never_seen_is_behind_by_no_known_time(capsys):
    voters = [
        ReplicaState(replica_id=1, log_end_offset=7, last_caught_up_timestamp=1_700_000_000_000),
        ReplicaState(replica_id=2, log_end_offset=-1, last_caught_up_timestamp=-1),
    ]
    _print_status("abc", ResponsePartitionData(leader_id=1, current_voters=voters), [], "table")
    assert "MaxFollowerLagTimeMs:   -1" in capsys.readouterr().out.splitlines()


def test_a_leader_that_is_being_removed_is_no_voter_any_more(capsys):
    voters = [ReplicaState(replica_id=1, log_end_offset=7), ReplicaState(replica_id=2, log_end_offset=9)]
    partition = ResponsePartitionData(leader_id=3, leader_epoch=4, current_voters=voters)
    _print_status("abc", partition, [], "table")
    _print_replication(partition, None, "json")
    shown = capsys.readouterr().out
    assert "LeaderId:               3\n" in shown
    assert "MaxFollowerLag:         2\n" in shown
    assert '"Leader"' not in shown


def run(*words):
    return CliRunner().invoke(command, ["--bootstrap-server", "nowhere:1", *words])


def test_voters_are_checked_before_anybody_is_asked(tmp_path):
    directory = uuid_to_text(DIRECTORY)
    removed = run("remove-controller", "--controller-id", "1", "--controller-directory-id", directory, "--dry-run")
    assert removed.stdout == f"DRY RUN of removing  KRaft controller 1 with directory id {directory}\n"
    bad = run("remove-controller", "--controller-id", "1", "--controller-directory-id", "zzz")
    assert (bad.exit_code, "Failed to parse --controller-directory-id" in bad.stderr) == (1, True)
    missing = run("add-controller", "--dry-run")
    assert (missing.exit_code, "reads the new controller's own configuration" in missing.stderr) == (2, True)


def test_the_help_of_a_part_needs_no_address():
    assert CliRunner().invoke(command, ["add-controller", "--help"]).exit_code == 0
