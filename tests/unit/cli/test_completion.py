"""Completion scripts, and what the shells get when they ask; in the shells themselves where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidelog.cli.completion import OWN, SHELLS, command
from tidelog.cli.main import COMMANDS


@pytest.mark.parametrize("shell", SHELLS)
def test_every_tool_is_completed_under_both_names(shell: str) -> None:
    printed = CliRunner().invoke(command, [shell]).stdout
    for name in COMMANDS:
        assert name in OWN or f"_KAFKA_{name.replace('-', '_').upper()}_COMPLETE" in printed
    assert "_TIDELOG_COMPLETE" in printed


@pytest.mark.parametrize("shell", SHELLS)
def test_flags_of_a_command_are_offered(shell: str) -> None:
    words = {"COMP_WORDS": "tidelog topics --under", "COMP_CWORD": "2" if shell != "fish" else "--under"}
    code = "from tidelog.cli.main import main; main(prog_name='tidelog')"
    environment = {**os.environ, **words, "_TIDELOG_COMPLETE": f"{shell}_complete"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "--under-replicated-partitions" in run.stdout
    assert "--under-min-isr-partitions" in run.stdout
    assert "--topic-id" not in run.stdout


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with ``tidelog`` in it, for PATH."""
    program = tmp_path / "tidelog"
    program.write_text(f"#!{sys.executable}\nfrom tidelog.cli.main import main\nmain(prog_name='tidelog')\n")
    program.chmod(0o755)
    return tmp_path


ASKED = {
    "bash": (
        'eval "$(tidelog completion bash)"\nCOMP_WORDS=(tidelog topics --unavail)\nCOMP_CWORD=2\n'
        '_tidelog_completion tidelog\necho "${COMPREPLY[@]}"'
    ),
    "zsh": (
        'compdef() { :; }; compadd() { print -r -- "$@"; }; _describe() { print -r -- ${(P)3}; }\n'
        'eval "$(tidelog completion zsh)"\nwords=(tidelog topics --unavail); CURRENT=3\n_tidelog_completion'
    ),
    "fish": 'tidelog completion fish | source\ncomplete -C "tidelog topics --unavail"',
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_completes(shell: str, tools: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([shell, "-c", ASKED[shell]], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert "--unavailable-partitions" in run.stdout, run.stderr
