"""Our programs in C: compiled once, into the cache."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools.jars import cache

HERE = Path(__file__).parent
FLAGS = ("-O2", "-Wall", "-Wextra")


class NoCompiler(Exception):
    """There is no C compiler, or it refuses; the text says which."""


def program(name: str, folder: Path = HERE, libraries: Sequence[str] = ()) -> Path:
    """The program made of ``NAME.c`` in the folder, linked with these libraries. Raises NoCompiler."""
    source = folder / f"{name}.c"
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler("no C compiler (cc): install gcc or clang")
    flags = [*FLAGS, "-I", str(HERE), *(["-msse4.2"] if platform.machine() in {"x86_64", "AMD64"} else [])]
    linked = [f"-l{library}" for library in libraries]
    texts = [source, *sorted({*HERE.glob("*.h"), *folder.glob("*.h")})]
    stamp = hashlib.sha256(b"".join(text.read_bytes() for text in texts) + " ".join([*FLAGS, *linked]).encode()).hexdigest()[:12]
    target = cache() / "pair" / f"{name}-{stamp}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".new")
        command = [compiler, *flags, "-o", str(fresh), str(source), *linked]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and "openssl/" in done.stderr and "No such file" in done.stderr:
            raise NoCompiler(f"{source.name} needs OpenSSL's headers: install libssl-dev (Debian) or openssl-devel (Fedora)")
        if done.returncode:
            raise NoCompiler(f"{source.name} does not compile:\n{done.stderr}")
        fresh.replace(target)
    return target
