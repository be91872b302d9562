"""The consumer's settings, from flags, files and properties."""

import pytest
from click.testing import CliRunner

from tests.unit.cli.lonely_node import lonely_node
from tests.unit.cli.running_node import running_node
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import console_consumer
from tidelog.cli.tools.console_consumer import command, settings
from tidelog.cli.tools.topics import command as topics

FLAGS = {parameter.name: None for parameter in command.params} | {"consumer_property": (), "command_property": ()}
FLAGS |= {"bootstrap_server": "b:1", "isolation_level": "read_uncommitted", "from_beginning": False}


def test_without_a_group_it_is_a_new_one_and_nothing_is_committed():
    made = settings(FLAGS)
    assert made["group.id"].startswith("console-consumer-")
    assert (made["enable.auto.commit"], made["auto.offset.reset"], made["isolation.level"]) == (
        "false",
        "latest",
        "read_uncommitted",
    )


def test_a_group_commits_what_was_printed():
    made = settings(FLAGS | {"group": "g", "from_beginning": True})
    assert (made["group.id"], made["auto.offset.reset"], made["enable.auto.offset.store"]) == ("g", "earliest", "false")
    assert "enable.auto.commit" not in made


def test_a_group_may_come_from_the_settings_but_only_one():
    assert settings(FLAGS | {"command_property": ("group.id=g",)})["group.id"] == "g"
    with pytest.raises(CommandFailed, match="a and g"):
        settings(FLAGS | {"command_property": ("group.id=g",), "group": "a"})


def test_the_beginning_and_another_reset_contradict_each_other():
    with pytest.raises(CommandFailed, match="contradict"):
        settings(FLAGS | {"command_property": ("auto.offset.reset=latest",), "from_beginning": True})


def test_where_no_broker_answers_it_ends_at_once():
    result = CliRunner().invoke(command, ["--bootstrap-server", "127.0.0.1:1", "--topic", "t"])
    assert result.stderr == "No broker answers at 127.0.0.1:1 (Connection refused). Is it running, and listening there?\n"
    assert result.exit_code == 1


@pytest.mark.parametrize("partition", [(), ("--partition", "3", "--offset", "earliest")])
def test_a_topic_that_does_not_exist_is_an_error_once_the_time_is_over(tmp_path, partition):
    with running_node(tmp_path) as address:
        flags = ["--bootstrap-server", address, "--topic", "nosuch", "--timeout-ms", "2000", *partition]
        result = CliRunner().invoke(command, flags)
    assert result.exit_code == 1
    assert "No record came within --timeout-ms" in result.stderr
    assert "ERROR Error processing message" in result.stderr


def test_a_topic_without_records_is_no_error(tmp_path):
    with running_node(tmp_path) as address:
        CliRunner().invoke(topics, ["--bootstrap-server", address, "--create", "--topic", "empty"])
        result = CliRunner().invoke(command, ["--bootstrap-server", address, "--topic", "empty", "--timeout-ms", "1000"])
    assert result.exit_code == 0


def test_a_group_without_a_coordinator_is_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(console_consumer, "EXPLAIN_S", 0.2)
    with lonely_node(tmp_path) as address:
        CliRunner().invoke(topics, ["--bootstrap-server", address, "--create", "--topic", "t"])
        flags = ["--bootstrap-server", address, "--topic", "t", "--group", "work", "--timeout-ms", "2000"]
        result = CliRunner().invoke(command, flags)
    assert "group work has no coordinator, so nothing is read" in result.stderr
    assert "offsets.topic.replication.factor" in result.stderr
