"""A node with an address of its own, on disks that a test can spoil.

``python placed_node.py ADDRESS FAULTS PROPERTIES``: connections to other nodes come from ADDRESS, so that the network of a test
knows whose they are. FAULTS is a file with one byte for each log dir, in the order of ``log.dirs``: an errno that every change
below that dir fails with, or 0 while the disk is well. Reads go on, as they do where a disk is full or mounted read-only.
Only the test's composition knows of that; the node has no such settings.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidelog.cli import start
from tidelog.server.disk import DiskFile, DiskFileSystem
from tidelog.server.runtime import new_event_loop

LOG_DIRS = "log.dirs="


def write_fault(path: Path, log_dir: int, error: int, count: int = 2) -> None:
    """Changes below that log dir fail from now on with this errno; with 0 they do not any more."""
    if not path.exists():
        path.write_bytes(bytes(count))
    with path.open("r+b") as file:
        file.seek(log_dir)
        file.write(bytes([error]))


def spoil(faults: mmap.mmap, dirs: list[str]) -> None:
    """Every change to files below these dirs asks first whether their disk is well."""

    def check(path: str) -> None:
        for index, each in enumerate(dirs):
            if faults[index] and (path == each or path.startswith(each + "/")):
                raise OSError(faults[index], os.strerror(faults[index]), path)

    def of_file(method: Callable[..., Any]) -> Callable[..., Any]:
        def checked(self: DiskFile, *args: Any) -> Any:
            check(self.path)
            return method(self, *args)

        return checked

    def of_path(method: Callable[..., Any]) -> Callable[..., Any]:
        def checked(self: DiskFileSystem, path: str, *args: Any, **named: Any) -> Any:
            check(path)
            return method(self, path, *args, **named)

        return checked

    for name in ("write", "truncate", "sync"):
        setattr(DiskFile, name, of_file(getattr(DiskFile, name)))
    for name in ("make_dirs", "rename", "remove", "remove_tree", "sync_dir"):
        setattr(DiskFileSystem, name, of_path(getattr(DiskFileSystem, name)))


def main() -> None:
    address, faults, properties = sys.argv[1:]
    told = [line for line in Path(properties).read_text().splitlines() if line.startswith(LOG_DIRS)]
    with open(faults, "r+b") as file:
        spoil(mmap.mmap(file.fileno(), 0), told[-1].removeprefix(LOG_DIRS).split(","))
    kind: Any = type(new_event_loop())

    class PlacedLoop(kind):  # type: ignore[misc]
        async def create_connection(self, *args: Any, **named: Any) -> Any:
            return await super().create_connection(*args, **{"local_addr": (address, 0), **named})

    start.new_event_loop = PlacedLoop  # type: ignore[attr-defined]
    start.command([properties])


if __name__ == "__main__":
    main()
