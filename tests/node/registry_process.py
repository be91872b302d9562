"""``tidelog registry`` as a process of its own, for tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

READY_S = 60


class RegistryProcess:
    """It listens on a free port of this machine; ``url`` is known after ``start``."""

    def __init__(self, servers: str, *arguments: str) -> None:
        self._command = [
            *(sys.executable, "-m", "tidelog.cli.main", "registry", "--bootstrap-server", servers),
            *("--listen", "127.0.0.1:0", *arguments),
        ]
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        """Returns when it serves. AssertionError with what it printed when it ended instead."""
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self._process.stdout is not None
        printed = []
        for line in self._process.stdout:
            printed.append(line)
            found = re.search(r"https?://\S+", line)
            if found:
                self.url = found[0]
                return
        raise AssertionError("".join(printed))

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        code = process.wait(READY_S)
        assert process.stdout is not None
        process.stdout.close()
        return code


@contextmanager
def registry(servers: str, *arguments: str) -> Iterator[RegistryProcess]:
    """A registry until the block ends."""
    process = RegistryProcess(servers, *arguments)
    process.start()
    try:
        yield process
    finally:
        process.stop()
