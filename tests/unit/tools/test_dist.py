"""Parts of ``make dist`` that need neither a compiler nor an index of packages."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from tools.dist import NotBuilt, interpreters, run, tagged


def test_only_pythons_that_run_and_are_of_the_version_are_found() -> None:
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = interpreters([mine, "3.99"])
    assert set(found) <= {mine}
    for python in found.values():
        assert run([python, "-c", "import sys; print(sys.version_info[:2])"]).strip() == str(sys.version_info[:2])


def test_a_command_that_fails_ends_the_build_with_what_it_said() -> None:
    with pytest.raises(NotBuilt, match="ended with 3:\nwhy not"):
        run([sys.executable, "-c", "import sys; print('why not'); sys.exit(3)"])


def test_a_wheel_without_compiled_modules_is_not_tagged(tmp_path: Path) -> None:
    wheel = tmp_path / "tidelog-0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tidelog/__init__.py", "")
    with pytest.raises(NotBuilt, match="has no compiled module"):
        tagged(wheel, Path(sys.executable), tmp_path)
