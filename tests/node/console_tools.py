"""Runs the command line against a broker of its own."""

from __future__ import annotations

import subprocess
import sys

from tidelog.cli.main import module_of

TIMEOUT_S = 60


def run(tool: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The tool as its users start it, in a process of its own."""
    words = [sys.executable, "-m", module_of(tool), *arguments]
    return subprocess.run(words, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)
