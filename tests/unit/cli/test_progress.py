"""A bar on a terminal, nothing where a program reads."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from tidelog.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_where_stderr_is_no_terminal_nothing_is_drawn_nor_imported() -> None:
    script = (
        "import sys; from tidelog.cli import progress\n"
        "with progress.bar('sent', 10) as told: told(5)\n"
        "print([name for name in sys.modules if name.startswith('rich')])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_on_a_terminal_it_says_what_and_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.bar("sent", 10) as told:
        told(10)
    assert "sent" in terminal.getvalue()
    assert "10/10" in terminal.getvalue()
