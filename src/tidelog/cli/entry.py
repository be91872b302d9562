"""The start of every command: SIGTERM and a closed terminal interrupt it as Ctrl-C does, so that what is open is closed in order.

Commands with an end of their own (a node, a consumer, a move of replicas) replace these handlers.
"""

from __future__ import annotations

import signal
from types import FrameType

import click

from tidelog.server.signals import ending_signals


def run(command: click.Command, name: str) -> None:
    """Runs the command with the arguments of this process and ``--version``, and exits. ``name`` is what its help calls it."""
    for number in ending_signals():
        signal.signal(number, _interrupt)
    if not any("--version" in option.opts for option in command.params):
        # As Kafka's tools: the version first, and on stdout.
        click.version_option(package_name="tidelog", message="%(version)s (tidelog)")(command)
    command(prog_name=name)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
