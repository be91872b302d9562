"""Hatch's build hook: compiles what ``spark`` has in Cython where there is a compiler, and says so where there is none.

The package is whole without them: ``tidelog.spark.columns`` and ``rows`` do the same in Python, several times slower. So nothing
here may fail an installation. ``TIDELOG_PURE=1`` leaves the extension out on purpose.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/tidelog/spark")
NAMES = ("_columns", "_rows")


def pure() -> bool:
    """Whether the user wants no extension."""
    return os.environ.get("TIDELOG_PURE") == "1"


def compile_extensions(root: Path, target: Path) -> list[Path]:
    """The compiled modules, in ``target``. Raises whatever Cython and the compiler raise."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    flags = ["-O2", "-g0"] if os.name == "posix" else []
    wanted = []
    for name in NAMES:
        pyx = target / f"{name}.pyx"
        shutil.copy2(root / FOLDER / pyx.name, pyx)
        wanted.append(Extension(f"tidelog.spark.{name}", [str(pyx)], extra_compile_args=flags))
    extensions = cythonize(wanted, build_dir=str(target), quiet=True)
    command = build_ext(Distribution({"name": "tidelog", "ext_modules": extensions}))
    command.build_lib = str(target / "lib")
    command.build_temp = str(target / "temp")
    command.ensure_finalized()
    command.run()
    return [Path(command.get_ext_fullpath(extension.name)) for extension in wanted]


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
            built = compile_extensions(root, Path(scratch))
        except (
            Exception,
            SystemExit,
        ) as error:  # no compiler, no headers, no Cython
            print(f"tidelog: without compiled modules, topics in Spark are slower ({error})", file=sys.stderr)
            shutil.rmtree(scratch, ignore_errors=True)
            return
        if version == "editable":
            for module in built:
                shutil.copy2(module, root / FOLDER / module.name)
            shutil.rmtree(scratch, ignore_errors=True)
            return
        self._scratch = scratch
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"] |= {str(module): f"tidelog/spark/{module.name}" for module in built}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        shutil.rmtree(getattr(self, "_scratch", ""), ignore_errors=True)
