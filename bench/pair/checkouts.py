"""Revisions, each in a tree and an environment of its own.

A revision becomes a ``git worktree`` below the cache; a path is taken as it stands. The environment is an empty venv whose only
path is the tree's source and the packages of the environment that measures: nothing is installed, both sides have the same
dependencies, and none of them sees this tree's tidelog.
"""

from __future__ import annotations

import filecmp
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tools.jars import cache

ROOT = Path(__file__).resolve().parent.parent.parent
_COMPILED = Path("src")


class NoCheckout(Exception):
    """A revision cannot be had; the text says why."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A tree under measurement. ``label``: the commit, or for a path the commit with ``+`` when something is not committed."""

    label: str
    tree: Path
    python: Path

    def entry_point(self) -> tuple[str, str]:
        """Module and function of ``tidelog``, as this revision's pyproject.toml names them."""
        named = tomllib.loads((self.tree / "pyproject.toml").read_text())["project"]["scripts"]["tidelog"]
        module, _, function = named.partition(":")
        return module, function

    def command(self, *args: str) -> list[str]:
        """``tidelog ARGS`` of this revision."""
        module, function = self.entry_point()
        script = f"import sys; from {module} import {function}; sys.argv[0] = 'tidelog'; sys.exit({function}())"
        return [str(self.python), "-c", script, *args]


def git(*args: str, tree: Path = ROOT) -> str:
    """What git prints. Raises NoCheckout."""
    done = subprocess.run(["git", *args], cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoCheckout(f"git {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout.strip()


def missing(tree: Path) -> list[str]:
    """Dependencies of the tree that this environment lacks, by name; versions are not compared."""
    wanted = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {match.group() for each in wanted if (match := re.match(r"[A-Za-z0-9._-]+", each))}
    lacking = []
    for name in sorted(names):
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            lacking.append(name)
    return lacking


def environment(tree: Path, folder: Path) -> Path:
    """The interpreter of a new environment for the tree. Raises NoCheckout when a dependency is missing."""
    if lacking := missing(tree):
        raise NoCheckout(f"{tree.name} needs {', '.join(lacking)}: install them into {sys.prefix} first")
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    shared = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # A line is a path; lines of files in those folders, such as an editable tidelog, are not read.
    (packages / "pair.pth").write_text("\n".join([str(tree / "src"), *sorted(shared)]) + "\n")
    python = folder / "bin" / "python"
    # Kept compiled, as where it is installed: the first start of one side must not compile what the other finds compiled.
    subprocess.run([str(python), "-m", "compileall", "-q", str(tree / "src")], capture_output=True, check=False)
    return python


def take_compiled(tree: Path) -> None:
    """Compiled modules, from this tree, where their source is the same; built where it is not."""
    for source in sorted((tree / _COMPILED).rglob("*.pyx")):
        if list(source.parent.glob(f"{source.stem}.*.so")):
            continue
        place = source.relative_to(tree / _COMPILED)
        ours = ROOT / _COMPILED / place
        built = list(ours.parent.glob(f"{source.stem}.*.so"))
        if ours.exists() and built and filecmp.cmp(source, ours, shallow=False):
            shutil.copy2(built[0], source.parent)
            continue
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tree / "build" / "pair"), str(tree)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoCheckout(f"{tree.name}: its compiled modules cannot be built:\n{done.stderr[-1000:]}")
        for module in (tree / "build" / "pair" / place.parent).glob(f"{source.stem}.*.so"):
            shutil.copy2(module, source.parent)


@contextmanager
def checked_out(revisions: list[str]) -> Iterator[list[Checkout]]:
    """A checkout of each; taken away in the end."""
    (cache() / "pair").mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="trees-", dir=cache() / "pair"))
    found: list[Checkout] = []
    added: list[Path] = []
    try:
        for number, revision in enumerate(revisions):
            if (Path(revision) / "pyproject.toml").exists():
                tree = Path(revision).resolve()
                dirty = "+" if git("status", "--porcelain", "--untracked-files=no", tree=tree) else ""
                label = git("rev-parse", "--short", "HEAD", tree=tree) + dirty
            else:
                label = git("rev-parse", "--short", f"{revision}^{{commit}}")
                tree = scratch / f"{number}-{label}"
                git("worktree", "add", "--detach", "--force", str(tree), label)
                added.append(tree)
                take_compiled(tree)
            found.append(Checkout(label, tree, environment(tree, scratch / f"{number}-env")))
        yield found
    finally:
        for tree in added:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, capture_output=True, check=False)
        shutil.rmtree(scratch, ignore_errors=True)
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, capture_output=True, check=False)
