"""Apache Kafka's jars for the interop tests and the benchmark: ``python tools/jars.py`` prints the folder that holds them.

They are resolved by Maven from ``tests/interop/setup/pom.xml`` into ``$TIDELOG_CACHE`` (default ``~/.cache/tidelog``), each
one held against ``jars.sha256`` beside it; a second run finds the folder and does nothing. ``--pin`` writes ``jars.sha256`` anew,
for whoever has changed the pom and looked at what it brought. Other systems have a folder each below ``tests/systems``, with a
pom, sums and a program of their own: ``python tools/jars.py [--pin] [FOLDER]``.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent / "tests" / "interop" / "setup"
SUMS = "jars.sha256"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class JarsMissing(Exception):
    """The jars cannot be had; the text says what to do."""


def cache() -> Path:
    """Where everything goes that can be fetched or built again."""
    return Path(os.environ.get("TIDELOG_CACHE") or Path.home() / ".cache" / "tidelog")


def jars_dir(setup: Path = SETUP) -> Path:
    """The folder for exactly these jars: its name changes with the pom and with the pinned sums."""
    pinned = setup / SUMS
    stamp = hashlib.sha256((setup / "pom.xml").read_bytes() + (pinned.read_bytes() if pinned.exists() else b"")).hexdigest()[:12]
    return cache() / f"{'kafka' if setup == SETUP else setup.name}-{stamp}"


def sums(folder: Path) -> str:
    """``sha256sum``'s lines for the jars of a folder."""
    return "".join(f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n" for jar in sorted(folder.glob("*.jar")))


def need(tool: str, package: str) -> None:
    """Make sure that a program is there: installed from the distribution when we may, else named with its package."""
    if shutil.which(tool):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing {package} ...", file=sys.stderr)
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "-qq", "update"], env=env, check=False, stdout=sys.stderr)
        subprocess.run(["apt-get", "-qq", "-y", "install", package], env=env, check=False, stdout=sys.stderr)
    if not shutil.which(tool):
        raise JarsMissing(f"'{tool}' is not installed, and Apache Kafka's jars need it: install {package}")


def resolve(setup: Path, folder: Path) -> None:
    """Let Maven copy what the pom asks for, the libraries of the libraries included."""
    need("java", "openjdk-17-jdk-headless")
    need("mvn", "maven")
    command = ["mvn", "-B", "-q", "-f", str(setup / "pom.xml"), COPY, f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise JarsMissing(f"Maven could not fetch the jars; it ended with:\n{(done.stdout + done.stderr)[-2000:]}")


def ensure(setup: Path = SETUP) -> Path:
    """The folder with the jars, fetched when it is not there. Raises JarsMissing."""
    target = jars_dir(setup)
    if target.exists():
        return target
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / ".jars.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return target
        fresh = target.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        resolve(setup, fresh)
        differ = sorted(set(sums(fresh).splitlines()) ^ set((setup / SUMS).read_text().splitlines()))
        if differ:
            lines = "\n".join(differ[:10])
            raise JarsMissing(f"the jars are not those that {SUMS} names (is the pom newer than the sums?):\n{lines}")
        fresh.rename(target)
    return target


def compiled(name: str, sources: Sequence[Path], jars: Path) -> Path:
    """The folder with the classes of ``sources``; compiled when they or the jars have changed. Raises JarsMissing."""
    stamp = hashlib.sha256(b"".join(source.read_bytes() for source in sources) + str(jars).encode()).hexdigest()[:12]
    target = cache() / f"{name}-{stamp}"
    if target.exists():
        return target
    need("javac", "openjdk-17-jdk-headless")
    fresh = target.with_suffix(f".{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    command = ["javac", "-nowarn", "-d", str(fresh), "-cp", f"{jars}/*", *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        names = ", ".join(source.name for source in sources)
        raise JarsMissing(f"{names}: it does not compile:\n{done.stderr}")
    with contextlib.suppress(OSError):  # another run was quicker
        fresh.rename(target)
    return target


def compiled_against(setup: Path) -> tuple[Path, Path]:
    """The folder with the classes of the Java sources in ``setup``, and the one with its jars. Raises JarsMissing."""
    jars = ensure(setup)
    return compiled(f"{setup.name}-classes", sorted(setup.glob("*.java")), jars), jars


def pin(setup: Path) -> None:
    """Write down the sums of what the pom brings today."""
    folder = cache() / f"{setup.name}-pin"
    shutil.rmtree(folder, ignore_errors=True)
    resolve(setup, folder)
    (setup / SUMS).write_text(sums(folder))
    shutil.rmtree(folder)


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--pin"]
    setup = Path(words[0]).resolve() if words else SETUP
    try:
        if "--pin" in sys.argv[1:]:
            pin(setup)
        print(ensure(setup))
    except JarsMissing as missing:
        print(f"jars: {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
