"""Runs commands at the same time: ``python tools/side_by_side.py 'types: mypy' 'rest: ruff check . && lint-imports'``.

What a command prints is shown line by line behind its name, standard error as well. Each runs to its end, whatever the others do;
then its seconds are shown. Exit status 0 when all of them ended with 0.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time


def run(name: str, command: str) -> int:
    """The exit status of a line for the shell."""
    began = time.monotonic()
    with subprocess.Popen(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(f"{name} | {line.rstrip()}\n")
            sys.stdout.flush()
    ended = f"ended with {process.returncode}" if process.returncode else "done"
    print(f"{name}: {ended} after {time.monotonic() - began:.0f} s", flush=True)
    return process.returncode


def main(arguments: list[str]) -> int:
    """0 when every command ended with 0."""
    statuses: dict[str, int] = {}

    def keep(name: str, command: str) -> None:
        statuses[name] = run(name, command)

    named = [(name, command.strip()) for name, _, command in (each.partition(":") for each in arguments)]
    if not named or not all(name and command for name, command in named):
        print("usage: side_by_side.py 'NAME: COMMAND' ...", file=sys.stderr)
        return 2
    threads = [threading.Thread(target=keep, args=each) for each in named]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0 if [statuses.get(name) for name, _ in named] == [0] * len(named) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
