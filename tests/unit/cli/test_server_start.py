"""Kafka's words for starting a node."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidelog.cli import start
from tidelog.cli.completion import OWN
from tidelog.cli.main import COMMANDS
from tidelog.cli.server_start import command

SCRIPTS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["scripts"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\n")
    return str(path)


def test_a_file_and_overrides_start_a_node_as_tidelog_start_does(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[object, ...]] = []
    monkeypatch.setattr(start, "start", lambda *given: started.append(given))
    done = CliRunner().invoke(command, [file, "--override", "node.id=7", "--override", "log.dirs=/a=b"])
    assert done.exit_code == 0, done.output
    assert started == [(file, ("node.id=7", "log.dirs=/a=b"), None, None)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-daemon", "FILE"], "Let a supervisor such as systemd run the node"),
        ([], "Missing argument 'server.properties'"),
        (["no-such.properties"], "does not exist"),
        (["FILE", "more"], "unexpected extra argument (more)"),
        (["FILE", "--override", "no-equals-sign"], "no KEY=VALUE"),
    ],
)
def test_other_words_start_nothing(file: str, words: list[str], said: str) -> None:
    done = CliRunner().invoke(command, [file if word == "FILE" else word for word in words])
    assert done.exit_code == 2
    assert said in done.output


def test_each_command_of_kafka_has_one_of_tidelog_and_is_completed() -> None:
    of_kafka = {name.removeprefix("kafka-") for name in SCRIPTS if name.startswith("kafka-")}
    assert of_kafka - {"server-start"} == set(COMMANDS) - OWN
