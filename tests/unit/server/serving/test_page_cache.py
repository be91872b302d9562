from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidelog.server.serving import page_cache
from tidelog.server.serving.page_cache import STRIDE, Borrowed, read_resident, resident_length

SIZE = 5 * STRIDE + 100


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Borrowed]:
    (tmp_path / "file").write_bytes(bytes(range(256)) * (SIZE // 256) + b"x" * (SIZE % 256))
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    yield Borrowed(fd)
    os.close(fd)


def cold_from(monkeypatch: pytest.MonkeyPatch, position: int) -> None:
    """The page cache ends there."""
    real = os.preadv

    def preadv(fd: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        if offset >= position:
            raise BlockingIOError(errno.EAGAIN, "not resident")
        count = real(fd, buffers, offset)
        return min(count, position - offset)

    monkeypatch.setattr(page_cache, "_NOWAIT", 8)
    monkeypatch.setattr(os, "preadv", preadv, raising=False)


def refusing(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """The file system does not know the flag, or fails."""
    real = os.preadv

    def preadv(fd: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        if flags:
            raise OSError(code, os.strerror(code))
        return real(fd, buffers, offset)

    monkeypatch.setattr(page_cache, "_NOWAIT", 8)
    monkeypatch.setattr(page_cache, "_without_flag", {})
    monkeypatch.setattr(os, "preadv", preadv, raising=False)


def test_what_is_in_the_page_cache_is_read(opened: Borrowed, monkeypatch: pytest.MonkeyPatch) -> None:
    cold_from(monkeypatch, SIZE)
    into = memoryview(bytearray(10))
    assert read_resident(opened, 256, into) == 10
    assert bytes(into) == bytes(range(10))
    assert resident_length(opened, 0, SIZE) == SIZE


def test_what_is_not_is_said_to_be_cold_and_not_waited_for(opened: Borrowed, monkeypatch: pytest.MonkeyPatch) -> None:
    cold_from(monkeypatch, 0)
    assert read_resident(opened, 0, memoryview(bytearray(10))) == -1
    assert resident_length(opened, 0, SIZE) == 0


def test_only_the_resident_beginning_counts(opened: Borrowed, monkeypatch: pytest.MonkeyPatch) -> None:
    cold_from(monkeypatch, 2 * STRIDE + 1)
    assert 0 < resident_length(opened, 0, SIZE) <= 2 * STRIDE + 1
    assert resident_length(opened, 2 * STRIDE + 1, STRIDE) == 0


def test_the_last_byte_is_looked_at_too(opened: Borrowed, monkeypatch: pytest.MonkeyPatch) -> None:
    cold_from(monkeypatch, STRIDE + 10)
    assert resident_length(opened, 0, STRIDE + 11) <= STRIDE + 10


@pytest.mark.parametrize(("kind", "expected"), [("tmpfs", 10), ("ext4", -1), ("nfs4", -1), ("", -1)])
def test_without_the_flag_only_memory_counts_as_resident(
    opened: Borrowed, monkeypatch: pytest.MonkeyPatch, kind: str, expected: int
) -> None:
    refusing(monkeypatch, errno.EOPNOTSUPP)
    monkeypatch.setattr(page_cache, "_file_system_type", lambda device: kind)
    assert read_resident(opened, 0, memoryview(bytearray(10))) == expected
    assert resident_length(opened, 0, STRIDE) == (STRIDE if expected > 0 else 0)


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_file_system_that_refused_the_flag_is_not_asked_again(
    opened: Borrowed, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    refusing(monkeypatch, errno.EOPNOTSUPP)
    monkeypatch.setattr(page_cache, "_file_system_type", lambda device: kind)
    first = read_resident(opened, 0, memoryview(bytearray(10)))
    plain = os.preadv

    def preadv(fd: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        assert not flags, "asked again"
        return plain(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv, raising=False)
    monkeypatch.setattr(page_cache, "_lives_in_memory", None)
    assert read_resident(opened, 0, memoryview(bytearray(10))) == first
    assert resident_length(opened, 0, STRIDE) == (STRIDE if kind == "tmpfs" else 0)


def test_a_system_without_the_call_reads_nothing_on_the_loop(opened: Borrowed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_NOWAIT", 0)
    assert read_resident(opened, 0, memoryview(bytearray(10))) == -1
    assert resident_length(opened, 0, STRIDE) == 0


def test_a_failing_disk_is_an_error(opened: Borrowed, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        read_resident(opened, 0, memoryview(bytearray(10)))
    with pytest.raises(OSError, match="Input/output"):
        resident_length(opened, 0, 10)


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="only Linux lists its mounts there")
def test_the_type_of_a_file_system_is_found(tmp_path: Path) -> None:
    assert page_cache._file_system_type(os.stat("/proc").st_dev) == "proc"
    assert page_cache._file_system_type(os.makedev(4095, 77)) == ""
