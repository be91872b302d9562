"""Settings as ``configs --add-config`` takes them."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.lonely_node import lonely_addresses
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


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with lonely_addresses(tmp_path_factory.mktemp("node")) as (_, address):
        yield address


def at_controller(address: str, *flags: str) -> Result:
    return CliRunner().invoke(command, ["--bootstrap-controller", address, *flags])


def test_a_controller_changes_and_shows_settings_of_nodes(controller: str) -> None:
    for flags, whose in (
        (("--entity-type", "brokers", "--entity-name", "1"), "config for broker 1"),
        (("--broker-defaults",), "default config for brokers in the cluster"),
    ):
        done = at_controller(controller, "--alter", *flags, "--add-config", "log.retention.ms=7200000")
        assert done.output == f"Completed updating {whose}.\n"
        shown = at_controller(controller, "--describe", *flags, "--output", "json")
        (found,) = json.loads(shown.output)
        assert [each["value"] for each in found["configs"] if each["name"] == "log.retention.ms"] == ["7200000"]
        assert at_controller(controller, "--alter", *flags, "--delete-config", "log.retention.ms").exit_code == 0
    every = at_controller(controller, "--describe", "--entity-type", "brokers").output
    assert "Dynamic configs for broker 1 are:" in every
    assert "Default configs for brokers in the cluster are:" in every


def test_a_controller_changes_quotas_groups_and_levels_of_its_own_loggers(controller: str) -> None:
    alice = ("--alter", "--user", "alice")
    assert at_controller(controller, *alice, "--add-config", "producer_byte_rate=10").exit_code == 0
    assert at_controller(controller, *alice, "--delete-config", "producer_byte_rate").exit_code == 0
    group = ("--entity-type", "groups", "--entity-name", "g")
    assert at_controller(controller, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000").exit_code == 0
    assert "consumer.session.timeout.ms=50000" in at_controller(controller, "--describe", *group).output
    level = at_controller(controller, "--describe", "--broker-logger", "1").output
    assert "root=" in level


@pytest.mark.parametrize(
    ("flags", "said", "status"),
    [
        (("--describe", "--entity-type", "topics"), "Controllers do not list topics: name one with --entity-name", 2),
        (("--describe", "--entity-type", "groups"), "Controllers do not list groups", 2),
        (("--describe", "--entity-type", "users"), "do not show them: give --bootstrap-server", 2),
        (("--describe", "--entity-type", "topics", "--entity-name", "nope"), "UNKNOWN_TOPIC_OR_PARTITION", 1),
        (("--describe", "--entity-type", "brokers", "--entity-name", "7"), "no controller 7; it has 1", 1),
        (("--describe", "--entity-type", "brokers", "--entity-name", "x"), "is a node id, a number: x is none", 1),
        (("--alter", "--broker", "1", "--add-config", "log.dirs=/x"), "[log.dirs]", 1),
        (("--bootstrap-server", "a:1", "--describe", "--entity-type", "brokers"), "Only one of --bootstrap-server", 2),
    ],
)
def test_what_a_controller_cannot_do_is_said(controller: str, flags: tuple[str, ...], said: str, status: int) -> None:
    result = at_controller(controller, *flags)
    assert said in result.output
    assert result.exit_code == status
