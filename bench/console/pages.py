"""The console's pages in headless Chromium, and what an open page makes the console ask of the brokers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.console.consoles import Console, console
from bench.console.filling import Size

FRONT = Path(__file__).resolve().parent.parent.parent / "front"
BROWSERS = ("chromium", "chromium-headless-shell")
OPEN = (
    ("no page", None),
    ("health", "c/main"),
    ("topics", "c/main/topics"),
    ("groups", "c/main/groups"),
    ("a group", "c/main/groups/{group}"),
    ("brokers", "c/main/brokers"),
)


def environment() -> dict[str, str]:
    """With the browser, where CHROMIUM does not name it. RuntimeError when there is none."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if named is None:
        raise RuntimeError("there is no Chromium: install Debian's package chromium, or name one in CHROMIUM")
    return {**os.environ, "CHROMIUM": named}


def driven(*arguments: str) -> Iterator[dict[str, Any]]:
    """The lines of a run of ``measure.mjs``. RuntimeError when it fails."""
    command = ("node", "measure.mjs", *arguments)
    process = subprocess.Popen(command, cwd=FRONT, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            yield json.loads(line)
        if process.wait():
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()


def measure(bootstrap: str, folder: Path, brokers: Mapping[int, int], size: Size, rounds: int, seconds: float) -> dict[str, Any]:
    """Each page ``rounds`` times on one console, the first on one that knows nothing; then each of ``OPEN`` for ``seconds``."""
    topic, group = size.topic(size.topics // 2), size.group(size.groups // 2)
    with console(bootstrap, folder, brokers) as found:
        samples = []
        for sample in driven(found.url, topic, group, str(rounds)):
            samples.append(sample)
            print(f"  {_told(sample)}", file=sys.stderr, flush=True)
        standing = {name: _kept_open(found, path and path.format(group=group), seconds) for name, path in OPEN}
        return {"samples": samples, "open": standing, "memory_mb": found.most_memory()}


def _told(sample: Mapping[str, Any]) -> str:
    if sample["kind"] == "scroll":
        return f"scrolling: longest frame {max(sample['frames']):.0f} ms, its thread at most {max(sample['cpu']):.0f} ms CPU"
    paint = "no" if sample["paint"] is None else f"{sample['paint']:.0f} ms"
    refused = f"; REFUSED {sample['refused'][:200]}" if sample["refused"] else ""
    return f"{sample['name']}: paint {paint}, usable {sample['usable']:.0f} ms, {sample['cpu']:.0f} ms CPU{refused}"


@contextmanager
def _opened(found: Console, path: str | None, seconds: float) -> Iterator[None]:
    """A browser with that page, which is usable; it stays a little longer than that."""
    if path is None:
        yield
        return
    lines = driven(found.url, path, str(seconds + 5))
    next(lines)
    try:
        yield
    finally:
        lines.close()  # type: ignore[attr-defined]


def _kept_open(found: Console, path: str | None, seconds: float) -> dict[str, Any]:
    with _opened(found, path, seconds), found.measured() as spent:
        time.sleep(seconds)
    row = {**spent[0].as_json(), "memory_mb": round(found.memory(), 1)}
    brokers = sum(row["brokers_cpu_s"].values()) / seconds
    asked = sum(row["requests"].values()) / seconds
    name = path or "no page"
    print(f"  {name} open: {asked:.2f} requests/s, brokers {brokers:.2%} of a core, {row['memory_mb']} MB", file=sys.stderr)
    return row
