"""Settings as ``configs --add-config`` takes them."""

import pytest
from click.testing import CliRunner

from tests.unit.cli.running_node import running_node
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.configs import additions, command


def test_brackets_hold_commas_and_values_may_be_empty():
    text = "cleanup.policy=[compact,delete], retention.ms=5,listener.name=,x=a=b"
    assert additions(text, None) == {"cleanup.policy": "compact,delete", "retention.ms": "5", "listener.name": "", "x": "a=b"}


@pytest.mark.parametrize("text", ["retention.ms", "a=1,b", "=1", "a=[1,2"])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(CommandFailed, match="name=value pairs"):
        additions(text, None)


def test_the_error_for_a_pair_without_a_sign_does_not_repeat_what_may_be_a_password() -> None:
    with pytest.raises(CommandFailed, match=r"number \d.* is none"):
        additions("a=1,password s3cret", None)


def test_a_file_is_a_properties_file(tmp_path):
    file = tmp_path / "topic.properties"
    file.write_text("retention.ms = 5\n# comment\ncleanup.policy=compact,delete\n")
    assert additions(None, str(file)) == {"retention.ms": "5", "cleanup.policy": "compact,delete"}


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_topic_that_does_not_exist_is_an_error(tmp_path, output):
    with running_node(tmp_path) as address:
        flags = ["--describe", "--entity-type", "topics", "--entity-name", "nope", "--output", output]
        result = CliRunner().invoke(command, ["--bootstrap-server", address, *flags])
    assert result.exit_code == 1
    assert "Topic 'nope' does not exist" in result.output
