"""One test class in a JVM of its own, and what is left of it afterwards: reports, logs, no processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.judges.streams.reports import Case, read
from tests.judges.streams.suites import Suite
from tools.jars import compiled_against

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
LAUNCHER = ROOT / "compat" / "launcher"
LOG4J = ROOT / "tests" / "interop" / "setup" / "log4j2.properties"
FLAGS = ("-Xmx1500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+EnableDynamicAgentLoading")
LIMIT_S = 1800
HOME = ROOT / "build" / "streams-judge"
END_LIMIT_S = 60
"""For a JVM that is ended, with its nodes."""


class NoVerdict(Exception):
    """The class did not run to its end; the text has the end of what the JVM printed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How classes are run."""

    own_cluster: bool = False
    """Kafka's own ``EmbeddedKafkaCluster`` with brokers inside the JVM, in place of nodes that ``launcher`` starts."""
    launcher: Path = LAUNCHER
    method: str = ""
    """A regular expression for the methods' names; those of the suite when it is empty."""
    limit_s: int = LIMIT_S
    home: Path = HOME
    """A folder for each class, with what it and its nodes printed."""


def run(suite: Suite, setting: Setting) -> tuple[list[Case], int]:
    """The cases, and how many seconds they took. Raises NoVerdict."""
    home = setting.home / suite.name
    shutil.rmtree(home, ignore_errors=True)
    for folder in ("clusters", "tmp"):
        (home / folder).mkdir(parents=True)
    began = time.monotonic()
    with (home / "out.txt").open("wb") as out, (home / "err.txt").open("wb") as err:
        process = subprocess.Popen(_command(suite, setting, home), stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=_env())
        try:
            status = process.wait(setting.limit_s)
        except subprocess.TimeoutExpired:
            raise NoVerdict(f"{suite.name} took more than {setting.limit_s} s:\n{_end(home)}") from None
        finally:
            _clean(process, setting, home)
    cases = read(home, suite.only_streams)
    if status > 1 or not cases:
        raise NoVerdict(f"{suite.name} ended with {status}:\n{_end(home)}")
    return cases, int(time.monotonic() - began)


def _command(suite: Suite, setting: Setting, home: Path) -> list[str]:
    classes, jars = compiled_against(HERE)
    path = f"{jars}/*" if setting.own_cluster else f"{classes}:{jars}/*"
    chosen = setting.method or suite.methods
    methods = [f"--include-methodname=.*#(?:{chosen})"] if chosen else []
    return [
        "java",
        *FLAGS,
        f"-Dlog4j2.configurationFile={LOG4J}",
        f"-Djava.io.tmpdir={home / 'tmp'}",
        f"-Djudge.launcher={setting.launcher}",
        f"-Djudge.clusters={home / 'clusters'}",
        f"-Djudge.logs={home}",
        "-cp",
        path,
        "org.junit.platform.console.ConsoleLauncher",
        "execute",
        "--disable-banner",
        "--disable-ansi-colors",
        "--details=testfeed",
        f"--reports-dir={home}",
        f"--select-class={suite.qualified}",
        *methods,
    ]


def _env() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "TIDELOG_PYTHON": sys.executable}


def _clean(process: subprocess.Popen[bytes], setting: Setting, home: Path) -> None:
    """End the JVM, which ends its nodes; what it left running after all is ended by the launcher."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for cluster in (home / "clusters").iterdir():
        subprocess.run([str(setting.launcher), "stop", str(cluster)], check=False, stdout=subprocess.DEVNULL)
    for folder in ("clusters", "tmp"):
        shutil.rmtree(home / folder, ignore_errors=True)


def _end(home: Path) -> str:
    """Of what the JVM printed."""
    return "".join((home / name).read_text(errors="replace")[-2000:] for name in ("out.txt", "err.txt"))
