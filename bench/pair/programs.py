"""Our programs in C: compiled once, into the cache."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from pathlib import Path

from tools.jars import cache

HERE = Path(__file__).parent
FLAGS = ("-O2", "-Wall", "-Wextra")


class NoCompiler(Exception):
    """There is no C compiler, or it refuses; the text says which."""


def program(name: str) -> Path:
    """The program made of ``NAME.c`` beside this file. Raises NoCompiler."""
    source = HERE / f"{name}.c"
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler("no C compiler (cc): install gcc or clang")
    flags = [*FLAGS, "-msse4.2"] if platform.machine() in {"x86_64", "AMD64"} else [*FLAGS]
    stamp = hashlib.sha256(source.read_bytes() + " ".join(flags).encode()).hexdigest()[:12]
    target = cache() / "pair" / f"{name}-{stamp}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".new")
        done = subprocess.run([compiler, *flags, "-o", str(fresh), str(source)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoCompiler(f"{source.name} does not compile:\n{done.stderr}")
        fresh.replace(target)
    return target
