"""Child processes that end with us, whatever ends us, and the ports that they listen on."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
STOP_S = 20.0
_ports = itertools.count(os.getpid() * 13)


class Failed(Exception):
    """A node, the generator or a tool failed; the text has the end of what it printed."""


def _end_with_parent() -> None:
    """In the child, before exec: SIGKILL when the harness dies, even by SIGKILL. Ctrl-C is the harness's business alone."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def launch(command: Sequence[str], log: Path, environment: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to ``log``."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=cwd,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  (no threads here)
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, and SIGKILL where that is not enough."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL."""
    process.kill()
    process.wait()


def run(command: Sequence[str], environment: Mapping[str, str], cwd: Path, limit_s: float) -> str:
    """Run to the end; what it printed. Raises Failed."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environment),
        cwd=cwd,
        preexec_fn=_end_with_parent,  # noqa: PLW1509  (no threads here)
    ) as child:
        try:
            out, err = child.communicate(timeout=limit_s)
        except BaseException as error:
            child.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f"{command[0]} was not done after {limit_s:.0f} s") from error
            raise
    if child.returncode:
        raise Failed(f"{' '.join(command[:4])} ... ended with {child.returncode}:\n{(out + err)[-2000:]}")
    return out


def free_ports(count: int) -> list[int]:
    """Ports that are free now, below the range from which outgoing connections take theirs."""
    found: list[int] = []
    for _ in range(1000):
        port = 31_000 + next(_ports) % 1000  # never one that a process which we started has not bound yet
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise Failed(f"no {count} free ports from 31000 to 31999")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM ends us as Ctrl-C does, through every ``finally``; both in the background, too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
