"""The share consumer's settings, from flags and properties; what it prints is in ``test_share_groups``."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.console_share_consumer import command, settings

FLAGS = {parameter.name: None for parameter in command.params} | {"bootstrap_server": "b:1"}


def test_the_group_has_kafkas_name_unless_one_is_given() -> None:
    made = settings(FLAGS, {})
    assert (made["group.id"], made["share.acknowledgement.mode"]) == ("console-share-consumer", "explicit")
    assert settings(FLAGS, {"group.id": "g"})["group.id"] == "g"
    with pytest.raises(CommandFailed, match="a and g"):
        settings(FLAGS | {"group": "a"}, {"group.id": "g"})


def test_a_poll_takes_no_more_records_than_are_wanted() -> None:
    assert settings(FLAGS, {})["max.poll.records"] == "500"
    assert settings(FLAGS | {"max_messages": 3}, {})["max.poll.records"] == "3"
    assert settings(FLAGS | {"max_messages": 3}, {"max.poll.records": "7"})["max.poll.records"] == "7"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--topic", "t", "--reject", "--release"], "contradict each other"),
        (["--topic", "t", "--property", "a=b", "--formatter-property", "a=b"], "cannot be specified together"),
        ([], "--topic"),
    ],
)
def test_flags_that_make_no_command_are_refused(words: list[str], message: str) -> None:
    done = CliRunner().invoke(command, ["--bootstrap-server", "b:1", *words])
    assert done.exit_code == 2
    assert message in done.output


def test_where_no_broker_answers_it_ends_at_once() -> None:
    done = CliRunner().invoke(command, ["--bootstrap-server", "127.0.0.1:1", "--topic", "t"])
    assert done.exit_code == 1
    assert "No broker answers at 127.0.0.1:1" in done.stderr


def test_a_setting_that_share_consumers_do_not_have_is_refused() -> None:
    words = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--command-property", "auto.offset.reset=earliest"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 1
    assert "auto.offset.reset" in done.stderr
