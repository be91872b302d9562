"""leader-election: flags, files, and its lines."""

import pytest
from click.testing import CliRunner

from tests.unit.cli.cluster_stand_in import StandIn
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.leader_election import command, elect, partitions_in
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--all-topic-partitions"], "Missing required option(s): election-type"),
        (["--election-type", "preferred"], "Say which partitions with one of"),
        (["--election-type", "preferred", "--all-topic-partitions", "--topic", "a"], "Say which partitions with one of"),
        (["--election-type", "preferred", "--topic", "a"], "Missing required option(s): partition"),
        (["--election-type", "preferred", "--all-topic-partitions", "--partition", "1"], "only allowed if topic is used"),
        (["--election-type", "best", "--all-topic-partitions"], "'best' is not one of"),
    ],
)
def test_flags_that_make_no_command_are_refused(flags: list[str], says: str) -> None:
    result = CliRunner().invoke(command, ["--bootstrap-server", "nowhere:1", *flags])
    assert (result.exit_code, says in result.stderr) == (2, True)


def test_each_outcome_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    results = [
        PartitionResult(partition_id=0),
        PartitionResult(partition_id=1, error_code=ErrorCode.ELECTION_NOT_NEEDED),
        PartitionResult(partition_id=2, error_code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, error_message="not there"),
    ]
    response = ElectLeadersResponse(replica_election_results=[ReplicaElectionResult(topic="a", partition_result=results)])
    session = StandIn({ElectLeadersRequest: response})
    assert elect(session, "PREFERRED", [("a", 0), ("a", 1), ("a", 2)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "Successfully completed leader election (PREFERRED) for partitions a-0",
        "Valid replica already elected for partitions a-1",
        "Error: a-2 has no new leader (PREFERRED): PREFERRED_LEADER_NOT_AVAILABLE: not there",
    ]
    elect(session, "UNCLEAN", None, say=False)
    assert capsys.readouterr().out == ""
    requests = [request for _, request in session.requests(ElectLeadersRequest)]
    assert [(request.election_type, request.topic_partitions is None) for request in requests] == [(0, False), (1, True)]


def test_a_file_names_partitions_once() -> None:
    assert partitions_in('{"partitions": [{"topic": "a", "partition": 1}]}') == [("a", 1)]
    for text, says in (
        ("{x", "is empty, or no JSON"),
        ("{}", 'no list "partitions"'),
        ('{"partitions": [{"topic": "a"}]}', "not of the form"),
        ('{"partitions": [{"topic": "a", "partition": 1}, {"topic": "a", "partition": 1}]}', "more than once: a-1"),
    ):
        with pytest.raises(CommandFailed, match=says):
            partitions_in(text)
