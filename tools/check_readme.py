"""Runs a document's code blocks as a reader types them, in a fresh copy of the project, and checks what they print.

``python tools/check_readme.py README.md``. One shell runs a page from top to bottom. It starts in the copy, with an empty HOME
and without any virtual environment on PATH: a command that is found only in one has to follow a line that activates it.

- ```` ```console ````: each line that begins with ``$ `` is typed; the lines up to the next ``$ `` are what it must print.
  ``...`` stands for anything, in a line or as lines of their own.
- ```` ```python ````: run by the ``python`` that the shell finds by then; a following ```` ```text ```` block is what it
  must print.
- ``<!-- run: background until "TEXT" -->`` before a block: all its lines are typed in another terminal, where nothing is
  activated yet, and the last one keeps running until the end; the page continues when TEXT is printed.
- ``<!-- run: elsewhere, REASON -->``: not run here; the reason says what runs it.

Exit status 0 when all blocks did as the document says.
"""

from __future__ import annotations

import os
import re
import select
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
        elif how.startswith("background"):
            steps.append(Step(kind, how, "\n".join(re.findall(r"^\$ (.*)$", body, flags=re.M)), None))
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


def fresh_path(path: str) -> str:
    """``path`` without the folders of virtual environments: what a new shell has before a page sets anything up."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if not Path(folder, "..", "pyvenv.cfg").exists())


class Terminal:
    """One bash for a whole page: what a line changes (activated environments, variables, folders) holds for those below it."""

    def __init__(self, folder: Path, env: dict[str, str], scratch: Path) -> None:
        self._said = {name: scratch / f"typed.{name}" for name in ("out", "err")}
        self._text = scratch / "typed.py"
        read, self._status = os.pipe()
        self._done = os.fdopen(read)
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            pass_fds=[self._status],
            start_new_session=True,
        )
        self.type("set -o pipefail")

    def python(self, text: str) -> tuple[int, str, str]:
        """Run a program with the ``python`` that the shell finds."""
        self._text.write_text(text)
        return self.type(f'python -c "$(cat {self._text})"')

    def type(self, line: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of a line. TimeoutError after ``COMMAND_TIMEOUT_S``."""
        assert self._bash.stdin is not None
        out, err = self._said["out"], self._said["err"]
        self._bash.stdin.write(f"{{ {line}\n}} >{out} 2>{err} </dev/null; echo $? >&{self._status}\n")
        self._bash.stdin.flush()
        if not select.select([self._done], [], [], COMMAND_TIMEOUT_S)[0]:
            raise TimeoutError(f"after {COMMAND_TIMEOUT_S} s it still ran; it printed:\n{out.read_text()}{err.read_text()}")
        return int(self._done.readline()), out.read_text(), err.read_text()

    def close(self) -> None:
        """The shell ends, and what it runs with it."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()


class Runner:
    """Runs steps one after another; background ones live until ``close``."""

    def __init__(self, folder: Path, home: Path, caches: dict[str, str]) -> None:
        self._folder = folder
        self._background: list[tuple[subprocess.Popen[bytes], Path]] = []
        kept = {key: value for key, value in os.environ.items() if key.startswith(KEPT)}
        path = fresh_path(os.environ["PATH"])
        self._env = caches | kept | {"HOME": str(home), "PATH": path, "TERM": "dumb", "PYTHONUNBUFFERED": "1"}
        self._terminal = Terminal(folder, self._env, folder.parent)

    def run(self, step: Step) -> str | None:
        """None when it did as written, else what went wrong."""
        if step.how.startswith("elsewhere"):
            return None
        if step.how.startswith("background"):
            return self._start(["bash", "-euo", "pipefail", "-c", step.text], step.how.split('"')[1])
        try:
            status, out, err = (self._terminal.python if step.kind == "python" else self._terminal.type)(step.text)
        except TimeoutError as error:
            return str(error)
        if status != 0:
            return f"exit status {status}, it printed:\n{out}{err}"
        if step.expected is not None and not matches(step.expected, out):
            return f"expected:\n{step.expected}\nprinted:\n{out}\nand to standard error:\n{err}"
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
        """End the shell and what runs in the background."""
        self._terminal.close()
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
        # Everything is installed from nothing, but downloaded once for all documents, and compiled once for all guides.
        cached = {"PIP_CACHE_DIR": str(ROOT / ".cache" / "pip")}
        if document.name != "README.md":
            cached["TIDELOG_BUILD_CACHE"] = str(ROOT / ".cache" / "build")
        runner = Runner(folder, home, cached)
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
