"""Walks through the console's pages on a broker of its own: ``python front/walk.py [--shots DIR]``.

Starts a broker, a console without login and one with login, read-only and below a path, fills the cluster with ``seed.py``,
and runs ``drive.mjs`` on both. Needs Node 20, Chromium and the package's extra ``console``. Exit status 1 when a page is not as
it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tidelog.testing import Broker

HERE = Path(__file__).resolve().parent
TIDELOG = str(Path(sys.executable).parent / "tidelog")
READY = "tidelog console is ready at "
EVERYTHING = {"rights": ["view", "payload", "change"], "topics": ["*"], "groups": ["*"], "cluster": True}
PASSWORD = "secret"  # of a console that lives for a minute, on loopback


@contextmanager
def running(what: str, *command: str) -> Iterator[str]:
    """A process, until the block ends, and the first line that it writes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"{what} ended before it was ready")
        yield line
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def console(bootstrap: str, *flags: str) -> Iterator[str]:
    """The address of a console."""
    with running("the console", TIDELOG, "console", "--bootstrap-server", bootstrap, "--listen", "127.0.0.1:0", *flags) as line:
        yield line.removeprefix(READY)


def drive(url: str, flags: list[str], environment: Mapping[str, str]) -> int:
    return subprocess.run(
        ["node", "drive.mjs", url, "main", *flags], cwd=HERE, env={**os.environ, **environment}, check=False
    ).returncode


def main() -> int:
    from tidelog.http.passwords import hashed

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--shots", help="a folder for a picture of each page")
    options = parser.parse_args()
    flags = ["--shots", str(Path(options.shots).resolve())] if options.shots else []
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        bootstrap = broker.bootstrap_servers
        users = Path(folder) / "users.json"
        ann = {"password": hashed(PASSWORD, os.urandom(16)), "roles": ["all"]}
        users.write_text(json.dumps({"roles": {"all": [EVERYTHING]}, "users": {"ann": ann}}))
        with running("the seed", sys.executable, str(HERE / "seed.py"), bootstrap, "--stay", "1500"):
            with console(bootstrap) as url:
                failed = drive(url, flags, {})
            with console(bootstrap, "--base-path", "/ops/console/", "--users", str(users), "--read-only") as url:
                failed |= drive(url, flags, {"LOGIN": f"ann:{PASSWORD}"})
    return failed


if __name__ == "__main__":
    sys.exit(main())
