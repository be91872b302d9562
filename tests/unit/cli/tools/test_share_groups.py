"""The tool: flags before any broker is asked, then a life of a group on a node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.cli.running_node import running_node
from tidelog.cli.tools.console_share_consumer import command as consume
from tidelog.cli.tools.share_groups import command
from tidelog.cli.tools.topics import command as topics


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Give one action"),
        (["--list", "--describe"], "Give one action"),
        (["--describe"], "needs either --group or --all-groups"),
        (["--describe", "--group", "g", "--members", "--state"], "--describe shows one thing"),
        (["--describe", "--group", "g", "--state", "Stable"], "only with --list"),
        (["--delete", "--group", "g", "--verbose"], "go with --describe"),
        (["--delete", "--group", "g", "--topic", "t"], "--delete-offsets"),
        (["--delete-offsets", "--group", "g"], "needs one --group, and --topic"),
        (["--reset-offsets", "--all-groups", "--all-topics", "--to-latest", "--execute"], "needs one --group"),
        (["--reset-offsets", "--group", "g", "--all-topics", "--to-latest"], "either --execute or --dry-run"),
        (["--reset-offsets", "--group", "g", "--to-latest", "--execute"], "--topic or --all-topics"),
        (["--reset-offsets", "--group", "g", "--all-topics", "--execute"], "--to-earliest, --to-latest, --to-datetime"),
        (["--list"], "[bootstrap-server]"),
    ],
)
def test_flags_that_make_no_command_are_refused(words: list[str], message: str) -> None:
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2
    assert message in done.output


def test_a_group_is_made_described_and_deleted(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        runner = CliRunner()

        def run(*words: str) -> tuple[int, str]:
            done = runner.invoke(command, ["--bootstrap-server", address, *words])
            return done.exit_code, done.output

        assert (
            runner.invoke(topics, ["--bootstrap-server", address, "--create", "--topic", "t", "--partitions", "2"]).exit_code == 0
        )
        assert run("--describe", "--group", "g") == (1, "Error: GROUP_ID_NOT_FOUND: Group g not found.\n")
        code, _ = run("--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--dry-run")
        assert (code, run("--list")) == (0, (0, ""))
        code, output = run("--reset-offsets", "--group", "g", "--topic", "t:1", "--to-earliest", "--execute", "--output", "json")
        assert (code, json.loads(output)) == (0, [{"group": "g", "topic": "t", "partition": 1, "new_offset": 0}])
        assert run("--list", "--state") == (0, "GROUP           STATE\ng               Empty\n")
        assert run("--list", "--state", "stable") == (0, "GROUP           STATE\n")
        _, output = run("--describe", "--group", "g", "--output", "json", "--verbose")
        (row,) = json.loads(output)
        assert (row["topic"], row["partition"], row["start_offset"], row["lag"]) == ("t", 1, 0, 0)
        _, output = run("--describe", "--all-groups", "--state")
        assert "Share group 'g' has no members." in output
        assert output.splitlines()[-1].split()[::4] == ["g", "0"]
        _, output = run("--delete-offsets", "--group", "g", "--topic", "t", "--topic", "u")
        assert output.splitlines()[2:] == [
            "t               Successful",
            "u               Error: UNKNOWN_TOPIC_OR_PARTITION: There is no such topic or partition here.",
        ]
        assert run("--describe", "--group", "g") == (0, "\nShare group 'g' has no offsets.\n")
        code, output = run("--delete", "--group", "g", "--group", "other")
        assert code == 1
        assert "* Group 'other' could not be deleted due to: it is no share group" in output
        assert "Deleted share groups: 'g'" in output


def test_the_console_prints_what_a_group_gets_and_gives_back_what_it_released(tmp_path: Path) -> None:
    from confluent_kafka import Producer

    with running_node(tmp_path) as address:
        runner = CliRunner()
        runner.invoke(topics, ["--bootstrap-server", address, "--create", "--topic", "t"])
        runner.invoke(
            command,
            ["--bootstrap-server", address, "--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--execute"],
        )
        producer = Producer({"bootstrap.servers": address})
        for text in ("one", "two"):
            producer.produce("t", text)
        assert producer.flush(30) == 0
        words = ["--bootstrap-server", address, "--topic", "t", "--group", "g", "--max-messages", "2", "--timeout-ms", "60000"]
        words += ["--formatter-property", "print.delivery=true"]
        released = runner.invoke(consume, [*words, "--release"])
        assert released.stdout == "Delivery:1\tone\nDelivery:1\ttwo\n"
        assert released.stderr.endswith("Processed a total of 2 messages\n")
        assert runner.invoke(consume, words).stdout == "Delivery:2\tone\nDelivery:2\ttwo\n"
        found = runner.invoke(command, ["--bootstrap-server", address, "--describe", "--group", "g", "--output", "json"])
        assert [row["lag"] for row in json.loads(found.output)] == [0]
