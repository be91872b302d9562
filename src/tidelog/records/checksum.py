"""CRC-32C (Castagnoli), as record batches and producer snapshots carry it.

The ``crc32c`` package costs some 60 ms to import because it looks up its own version and builds a command line; the function
is one small extension module inside it, loaded here directly in 1 ms. Where that module is not to be found under its usual
name, the package is imported after all.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Protocol, cast


class _Crc32c(Protocol):
    def __call__(self, data: bytes | bytearray | memoryview, value: int = 0, gil_release_mode: int = -1) -> int: ...


def _load() -> _Crc32c:
    package = PathFinder.find_spec("crc32c")
    if package is not None and package.submodule_search_locations is not None:
        spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return cast(_Crc32c, module.crc32c)
    import crc32c

    return cast(_Crc32c, crc32c.crc32c)


_crc32c = _load()
KEEP_THE_GIL = 0


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """The checksum of ``data``, continuing from ``value``.

    The interpreter lock is kept: a batch takes microseconds, and a loop that lets go of the lock waits milliseconds to get it
    back while another thread computes.
    """
    return _crc32c(data, value, KEEP_THE_GIL)
