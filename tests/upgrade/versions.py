"""Versions of tidelog: the sources of a commit in a folder of their own, run with this environment's packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.interop.nodes import ROOT

FIRST_CLUSTER = "6404e2c"
"""The commit of the first evening on which Kafka's system-test matrix ran: upgraded from while there is no tag."""
LEVELS = "import json; from tidelog.metadata.supported_features import supported_ranges; print(json.dumps(supported_ranges()))"


@dataclass(frozen=True, slots=True)
class Version:
    """``name``: as people call it; ``source``: what is on the path of its processes."""

    name: str
    source: Path

    def environment(self) -> dict[str, str]:
        """Of a process of this version."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "PYTHONPATH": str(self.source)}

    def supported(self) -> Mapping[str, tuple[int, int]]:
        """Lowest and highest level of each feature that this version supports."""
        done = subprocess.run(
            [sys.executable, "-c", LEVELS], env=self.environment(), capture_output=True, text=True, check=True, cwd=self.source
        )
        return {name: (low, high) for name, (low, high) in json.loads(done.stdout).items()}


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def newest_tag() -> str | None:
    """None where nothing has been released yet."""
    return next(iter(_git("tag", "--sort=-v:refname").splitlines()), None)


def checked_out(ref: str, home: Path) -> Version:
    """The sources of a tag or commit, unpacked below ``home``. CalledProcessError when there is no such commit."""
    commit = _git("rev-parse", "--short", f"{ref}^{{commit}}")
    folder = home / commit
    if not folder.exists():
        folder.mkdir(parents=True)
        with subprocess.Popen(["git", "archive", commit, "src"], cwd=ROOT, stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", str(folder)], stdin=archive.stdout, check=True)
    named = commit if ref == "HEAD" or ref.startswith(commit) else f"{ref} ({commit})"
    return Version(named, folder / "src")


def levels_to_lower(finalized: Mapping[str, int], supported: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """What has to go down before nodes that support only this may join: to the highest level that they support."""
    highest = {name: supported[name][1] if name in supported else 0 for name in finalized}
    return {name: highest[name] for name, level in sorted(finalized.items()) if level > highest[name]}
