"""reassign-partitions: which flags make a command, what is proposed; its lines, against a node."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.running_node import running_node
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import topics
from tidelog.cli.tools.reassign_partitions import command, propose


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_node(tmp_path_factory.mktemp("node")) as address:
        created = CliRunner().invoke(topics.command, ["--bootstrap-server", address, "--create", "--topic", "a"])
        assert created.exit_code == 0, created.output
        yield address


def run(server: str, *flags: str) -> Result:
    return CliRunner().invoke(command, ["--bootstrap-server", server, *flags])


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "moves.json"
    path.write_text(json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1]}]}))
    return str(path)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], "Give one action"),
        (["--list", "--verify"], "Give one action"),
        (["--execute"], '"[reassignment-json-file]"'),
        (["--list", "--throttle", "5"], "does not belong to"),
        (["--verify", "--additional"], "does not belong to"),
    ],
)
def test_flags_that_make_no_command_are_refused_before_anybody_is_asked(flags: list[str], says: str, file: str) -> None:
    if "--verify" in flags and len(flags) == 2 and flags[1] == "--additional":
        flags = [*flags, "--reassignment-json-file", file]
    result = run("nowhere:1", *flags)
    assert result.exit_code == 2
    assert says in result.stderr


def test_controllers_are_asked_to_list_and_cancel_only(file: str) -> None:
    flags = ["--bootstrap-controller", "nowhere:1", "--execute", "--reassignment-json-file", file]
    result = CliRunner().invoke(command, flags)
    assert (result.exit_code, "goes with --list and --cancel only" in result.stderr) == (2, True)


def test_a_round_says_what_kafkas_tool_says(server: str, file: str, tmp_path: Path) -> None:
    assert run(server, "--list").stdout == "No partition reassignments found.\n"
    done = run(server, "--execute", "--reassignment-json-file", file, "--throttle", "1000000")
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[0] == "Current partition replica assignment"
    assert lines[1].startswith('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["/')
    assert lines[2:] == [
        "Save this to use as the --reassignment-json-file option during rollback",
        "Warning: The throttle stays until --verify runs after the end of the reassignment: repeat --verify until it says so.",
        "Replication between brokers is throttled to 1000000 B/s",
        "Successfully started partition reassignment for a-0",
    ]
    assert run(server, "--verify", "--reassignment-json-file", file).stdout == (
        "Status of partition reassignment:\nReassignment of partition a-0 is completed.\n\n"
        "Clearing broker-level throttles on broker 1\nClearing topic-level throttles on topic a\n"
    )
    assert run(server, "--cancel", "--reassignment-json-file", file, "--preserve-throttles").stdout == (
        "None of the partitions in the file is being reassigned: nothing to cancel.\n"
        "No move of a replica between log directories is running: nothing to cancel.\n"
    )
    wanted = tmp_path / "topics.json"
    wanted.write_text('{"version": 1, "topics": [{"topic": "a"}]}')
    proposed = run(server, "--generate", "--topics-to-move-json-file", str(wanted), "--broker-list", "1").stdout
    assert '"replicas":[1],"log_dirs":["any"]' in proposed.splitlines()[-1]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"topic": "a", "partition": 0, "replicas": [9]}, "Error: Unknown broker id 9"),
        ({"topic": "a", "partition": 7, "replicas": [1]}, "Unable to find partition: a-7"),
        ({"topic": "none", "partition": 0, "replicas": [1]}, "Topic none not found."),
    ],
)
def test_what_is_not_there_is_named(server: str, tmp_path: Path, row: dict[str, object], says: str) -> None:
    path = tmp_path / "moves.json"
    path.write_text(json.dumps({"version": 1, "partitions": [row]}))
    result = run(server, "--execute", "--reassignment-json-file", str(path))
    assert result.exit_code == 1
    assert says in result.stderr


CURRENT = {("a", index): (0, 1) for index in range(4)}


def test_a_proposal_spreads_topics_over_racks() -> None:
    racks = {0: "x", 1: "x", 2: "y", 3: "y"}
    proposed = propose(CURRENT, racks, dict.fromkeys(racks, "host"), random.Random(7))
    assert proposed.keys() == CURRENT.keys()
    assert all(len({racks[broker] for broker in replicas}) == 2 for replicas in proposed.values())
    assert {racks[replicas[0]] for replicas in proposed.values()} == {"x", "y"}


def test_a_proposal_needs_enough_brokers_and_racks_for_all_or_none() -> None:
    with pytest.raises(CommandFailed, match="replication factor of 2 cannot be reached"):
        propose(CURRENT, {0: None}, {0: "host"}, random.Random(7))
    with pytest.raises(CommandFailed, match="--disable-rack-aware"):
        propose(CURRENT, {0: None, 1: "x"}, {0: "host", 1: "host"}, random.Random(7))
