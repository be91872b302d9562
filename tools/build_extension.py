"""Hatch's build hook: compiles the package's Cython modules where there is a compiler, and says so where there is none.

The package is whole without them: beside each ``_name.pyx`` stands Python that does the same, several times slower. So nothing
here may fail an installation. ``TIDELOG_PURE=1`` leaves the compiled modules out on purpose. ``TIDELOG_BUILD_CACHE`` names a
folder that keeps compiled modules for the next build of the same sources: the Makefile sets it, because it installs often.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = Path("src")
SOURCES = ("*.pyx", "*.pxd", "*.pxi")


def pure() -> bool:
    """Whether the user wants no compiled modules."""
    return os.environ.get("TIDELOG_PURE") == "1"


def sources(root: Path, *patterns: str) -> list[Path]:
    """The Cython files of the package, relative to ``src``, in order."""
    folder = root / PACKAGES
    return sorted(path.relative_to(folder) for pattern in patterns for path in folder.rglob(pattern))


def compile_extensions(root: Path, target: Path) -> dict[Path, Path]:
    """Compiles in ``target``: for each compiled module its file there, by its place relative to ``src``. ``CFLAGS`` of the
    environment stand in place of our flags. Raises whatever Cython and the compiler raise."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    for path in sources(root, *SOURCES):
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / PACKAGES / path, copy)
    for folder in {parent for path in sources(root, *SOURCES) for parent in path.parents if parent.name}:
        (target / folder / "__init__.pxd").touch()  # a package to Cython, so that modules find each other's declarations
    wanted = [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(target / path)],
            extra_compile_args=["-O2", "-g0"] if os.name == "posix" and not os.environ.get("CFLAGS") else [],
        )
        for path in sources(root, "*.pyx")
    ]
    extensions = cythonize(wanted, include_path=[str(target)], build_dir=str(target / "c"), quiet=True)
    command = build_ext(Distribution({"name": "tidelog", "ext_modules": extensions}))
    command.build_lib = str(target / "lib")
    command.build_temp = str(target / "temp")
    command.ensure_finalized()
    command.run()
    built = [Path(command.get_ext_fullpath(extension.name)) for extension in wanted]
    return {path.relative_to(target / "lib"): path for path in built}


def build_key(root: Path) -> str:
    """What compiled modules depend on, as hexadecimal digits: sources, this file, the interpreter, the machine and ``CFLAGS``."""
    digest = hashlib.sha256(repr((sys.version, platform.platform(), os.environ.get("CFLAGS", ""))).encode())
    for path in (Path(__file__), *(root / PACKAGES / name for name in sources(root, *SOURCES))):
        digest.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def kept_or_compiled(root: Path, scratch: Path) -> dict[Path, Path]:
    """``compile_extensions``, or what an earlier call for the same sources has left in ``TIDELOG_BUILD_CACHE``."""
    cache = os.environ.get("TIDELOG_BUILD_CACHE")
    if not cache:
        return compile_extensions(root, scratch)
    kept = Path(cache, build_key(root))
    if not kept.is_dir():
        built = compile_extensions(root, scratch)
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Two builds may end at the same time: a folder appears whole, under its name, or not at all.
        partial = Path(tempfile.mkdtemp(prefix="partial-", dir=kept.parent))
        for place, module in built.items():
            (partial / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(module, partial / place)
        try:
            partial.rename(kept)
        except OSError:  # the other build was first
            shutil.rmtree(partial, ignore_errors=True)
    return {path.relative_to(kept): path for path in sorted(kept.rglob("*")) if path.is_file()}


class CustomBuildHook(BuildHookInterface):
    """Adds the compiled modules to a wheel, or puts them beside their sources for an editable installation."""

    def dependencies(self) -> list[str]:
        """What has to be there to build; nothing where nothing is compiled."""
        return [] if pure() else ["cython>=3.1", "setuptools>=77"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is written; ``version`` is ``standard`` or ``editable``."""
        if pure():
            return
        root = Path(self.root)
        scratch = tempfile.mkdtemp(prefix="tidelog-build-")
        try:
            built = kept_or_compiled(root, Path(scratch))
        except (
            Exception,
            SystemExit,
        ) as error:  # no compiler, no headers, no Cython
            print(f"tidelog: installed without compiled modules, which only makes it slower ({error})", file=sys.stderr)
            shutil.rmtree(scratch, ignore_errors=True)
            return
        if version == "editable":
            for place, module in built.items():
                # A running process has the old file mapped: replace it, never write into it.
                beside = root / PACKAGES / place.with_name(f"{place.name}.new")
                shutil.copy2(module, beside)
                beside.replace(root / PACKAGES / place)
            shutil.rmtree(scratch, ignore_errors=True)
            return
        self._scratch = scratch
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"] |= {str(module): str(PurePosixPath(place)) for place, module in built.items()}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        shutil.rmtree(getattr(self, "_scratch", ""), ignore_errors=True)
