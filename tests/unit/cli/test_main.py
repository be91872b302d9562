from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tidelog.cli.main import COMMANDS, main, module_of


def test_the_help_names_every_command() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name, line in COMMANDS.items():
        assert name in result.stdout
        assert line in result.stdout


def test_every_command_is_there() -> None:
    for name in COMMANDS:
        command = import_module(module_of(name)).command
        assert isinstance(command, click.Command)
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_an_unknown_command_is_an_error() -> None:
    assert CliRunner().invoke(main, ["frobnicate"]).exit_code == 2


def test_a_mistyped_command_names_the_closest_one() -> None:
    mistyped = CliRunner().invoke(main, ["strat"])
    assert (mistyped.exit_code, "No such command 'strat'. Did you mean start?" in mistyped.stderr) == (2, True)
    assert "Did you mean" not in CliRunner().invoke(main, ["frobnicate"]).stderr


@pytest.mark.parametrize("name", ["topics", "configs", "consumer-groups", "reassign-partitions", "leader-election"])
def test_zookeeper_is_answered_with_what_to_write_instead(name: str) -> None:
    asked = CliRunner().invoke(main, [name, "--zookeeper", "localhost:2181"])
    assert (asked.exit_code, "--bootstrap-server HOST:PORT" in asked.stderr) == (2, True)


def test_every_installed_name_is_a_function() -> None:
    scripts = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["scripts"]
    assert {"kafka-dump-log", "kafka-storage"} <= set(scripts)
    for target in scripts.values():
        module, _, function = target.partition(":")
        assert callable(getattr(import_module(module), function))


def test_the_help_imports_no_broker() -> None:
    script = (
        "import sys, click.testing, tidelog.cli.main as m; click.testing.CliRunner().invoke(m.main, ['--help']);"
        "print([name for name in sys.modules if name.startswith('tidelog.') and not name.startswith('tidelog.cli')])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_help_imports_little_beside_click() -> None:
    """``tidelog --help`` is to answer in 150 ms. How many modules that takes is the same on every machine; how long is not."""
    script = (
        "import sys; before = set(sys.modules); import click; click_has = set(sys.modules) - before;"
        "import contextlib, io, tidelog.cli.main as m\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): m.main(['--help'])\n"
        "print(len(set(sys.modules) - before - click_has))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(run.stdout) <= 25, run.stdout


def test_commands_are_completed_without_importing_them() -> None:
    script = (
        "import os, sys; os.environ.update(_TIDELOG_COMPLETE='zsh_complete', COMP_WORDS='tidelog consumer', COMP_CWORD='1')\n"
        "import contextlib, tidelog.cli.main as m\n"
        "with contextlib.suppress(SystemExit): m.main(prog_name='tidelog')\n"
        "print(sorted(name for name in sys.modules if name.startswith('tidelog.cli.')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert lines[1::3] == ["consumer-groups", "consumer-perf-test"]
    assert lines[-1] == "['tidelog.cli.main']"
