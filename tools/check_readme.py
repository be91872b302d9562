"""Runs a document's code blocks as written, in a fresh copy of the project with an empty HOME, and checks what they print.

``python tools/check_readme.py README.md``. Blocks in one file share a working folder and a shell environment:

- ```` ```console ````: each line that begins with ``$ `` is run by bash; the lines up to the next ``$ `` are what it must print.
  ``...`` stands for anything, in a line or as lines of their own.
- ```` ```python ````: run by the Python of the environment that the block before it made (``python`` on PATH); a following
  ```` ```text ```` block is what it must print.
- ``<!-- run: background until "TEXT" -->`` before a block: the command keeps running until the end; go on when TEXT is printed.
- ``<!-- run: elsewhere, REASON -->``: not run here; the reason says who runs it.

Exit status 0 when all blocks did as the document says.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"(?:<!-- run: (?P<how>[^>]*?) -->\n)?```(?P<kind>console|python|text)\n(?P<body>.*?)```", re.S)
KEPT = ("PIP_", "SSL_", "REQUESTS_", "CURL_", "http_proxy", "https_proxy", "no_proxy", "LANG", "JAVA_HOME")
START_TIMEOUT_S = 300
COMMAND_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to run: how it is run, the text, and the lines it must print (None: whatever it likes)."""

    kind: str
    how: str
    text: str
    expected: str | None


def steps_of(document: str) -> list[Step]:
    """The document's blocks in order; a ``text`` block becomes the expectation of the step before it."""
    steps: list[Step] = []
    for match in FENCE.finditer(document):
        how, kind, body = match["how"] or "", match["kind"], match["body"]
        if kind == "text":
            steps[-1] = Step(steps[-1].kind, steps[-1].how, steps[-1].text, body)
        elif kind == "python":
            steps.append(Step(kind, how, body, None))
        else:
            for command in re.split(r"^\$ ", body, flags=re.M)[1:]:
                line, _, output = command.partition("\n")
                steps.append(Step(kind, how, line, output if output.strip() else None))
    return steps


def matches(expected: str, printed: str) -> bool:
    """Whether ``printed`` is what the document shows; ``...`` stands for anything."""
    pattern = re.escape("\n".join(line.rstrip() for line in expected.strip().split("\n")))
    found = "\n".join(line.rstrip() for line in printed.strip().split("\n"))
    return re.fullmatch(pattern.replace(re.escape("..."), ".*"), found, re.S) is not None


def copy_project(target: Path) -> None:
    """What a fresh clone would hold, with changes that are not committed yet."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    for name in filter(None, names.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


class Runner:
    """Runs steps one after another; background ones live until ``close``."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder = folder
        self._background: list[tuple[subprocess.Popen[bytes], Path]] = []
        kept = {key: value for key, value in os.environ.items() if key.startswith(KEPT)}
        path = f"{folder}/.venv/bin:{os.environ['PATH']}"
        # Everything is installed anew, but downloaded once for all documents.
        downloads = {"PIP_CACHE_DIR": str(ROOT / ".cache" / "pip")}
        self._env = downloads | kept | {"HOME": str(home), "PATH": path, "TERM": "dumb", "PYTHONUNBUFFERED": "1"}

    def run(self, step: Step) -> str | None:
        """None when it did as written, else what went wrong."""
        if step.how.startswith("elsewhere"):
            return None
        argv = ["python", "-c", step.text] if step.kind == "python" else ["bash", "-euo", "pipefail", "-c", step.text]
        if step.how.startswith("background"):
            return self._start(argv, step.how.split('"')[1])
        done = subprocess.run(
            argv, cwd=self._folder, env=self._env, text=True, timeout=COMMAND_TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        if done.returncode != 0:
            return f"exit status {done.returncode}, it printed:\n{done.stdout}{done.stderr}"
        if step.expected is not None and not matches(step.expected, done.stdout):
            return f"expected:\n{step.expected}\nprinted:\n{done.stdout}\nand to standard error:\n{done.stderr}"
        return None

    def _start(self, argv: list[str], until: str) -> str | None:
        output = self._folder.parent / f"background-{len(self._background)}.log"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                argv,
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        self._background.append((process, output))
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if until in output.read_text():
                return None
            if process.poll() is not None:
                break
            time.sleep(0.1)
        return f"did not print {until!r}, but:\n{output.read_text()}"

    def close(self) -> None:
        for process, _ in self._background:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(timeout=30)


def main() -> int:
    document = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "README.md")
    steps = steps_of(document.read_text())
    failed = ran = 0
    if not steps and document.name != "README.md":
        print(f"{document.name}: nothing to run")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder, home = Path(scratch, "tidelog"), Path(scratch, "home")
        folder.mkdir()
        home.mkdir()
        copy_project(folder)
        runner = Runner(folder, home)
        try:
            for step in steps:
                first = step.text.strip().split("\n")[0]
                started = time.monotonic()
                problem = runner.run(step)
                ran += not step.how.startswith("elsewhere")
                print(f"{'ok  ' if problem is None else 'FAIL'} {time.monotonic() - started:6.1f} s  {first}", flush=True)
                if problem is not None:
                    print(problem)
                    failed += 1
                    break
        finally:
            runner.close()
    print(f"{document.name}: {ran - failed} blocks did as written, {failed} did not")
    # A README without a block has lost what this is for.
    return 1 if failed or (not ran and document.name == "README.md") else 0


if __name__ == "__main__":
    sys.exit(main())
