"""Each flag of Apache Kafka 4.3.1's tools, as recorded from their help, is one of ours."""

from __future__ import annotations

import json
import tomllib
from importlib import import_module
from pathlib import Path

import click
import pytest

from tools.kafka_flags import CLASSES, COMMANDS, RECORDED, flags

THEIRS: dict[str, list[str]] = json.loads(RECORDED.read_text())
SCRIPTS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["scripts"]
OF_ALL = {"--help", "--version"}
"""Added where a command is run."""


def command(name: str) -> click.Command:
    module = import_module(SCRIPTS[f"kafka-{name}"].partition(":")[0])
    found: click.Command = module.group if hasattr(module, "group") else module.command
    return found


def own_flags(of: click.Command) -> set[str]:
    return {flag for parameter in of.params for flag in parameter.opts}


def test_every_tool_that_is_installed_is_recorded() -> None:
    assert {name.removeprefix("kafka-") for name in SCRIPTS if name.startswith("kafka-")} == set(CLASSES)
    assert set(THEIRS) == set(CLASSES) | {f"{name}.{word}" for name, words in COMMANDS.items() for word in words}


@pytest.mark.parametrize("name", THEIRS)
def test_each_flag_of_kafkas_tool_is_taken(name: str) -> None:
    tool, _, word = name.partition(".")
    ours = command(tool)
    known = own_flags(ours) | OF_ALL
    if word:
        assert isinstance(ours, click.Group)
        known |= own_flags(ours.commands[word])
    assert sorted(set(THEIRS[name]) - known) == []
    assert THEIRS[name], "no flag was found in its help"


def test_flags_are_read_from_both_kinds_of_help() -> None:
    of_joptsimple = (
        "Option          Description\n--files <String: a>  REQUIRED: The --list.\n--deep        If set\n  more --not-this\n"
    )
    of_argparse = "optional arguments:\n  -h, --help   show\n  --id ID, -i ID   The --id\n             as --that\n"
    assert flags(of_joptsimple) == ["--deep", "--files"]
    assert flags(of_argparse) == ["--help", "--id"]
