"""Memory that is held while a bench runs."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

import pytest

from bench.pair import holding

BUDDYINFO = """Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 0, zone   Normal  19605  57997  56789  54670  53254  52300   1252    662    367      2      1
"""
MEMINFO = "MemTotal:       24684000 kB\nMemFree:        21910000 kB\nMemAvailable:   22575000 kB\n"


def resident(memory: mmap.mmap) -> int:
    """Bytes of a mapping that are in memory."""
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        fields = line.split()
        begin, dash, end = fields[0].partition("-")
        if dash and int(begin, 16) <= first < int(end, 16):
            break
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))


def test_only_blocks_that_are_reported_count() -> None:
    assert holding.whole_blocks(BUDDYINFO) == ((1 + 2) * 512 + (3 + 1) * 1024) * 4096


def test_available_memory_is_in_bytes() -> None:
    assert holding.available(MEMINFO) == 22575000 * 1024


def test_one_page_of_each_piece_stays() -> None:
    memory = holding.hold(2 * holding.CHUNK)
    pieces = len(memory) // holding.PIECE
    assert resident(memory) == pieces * holding.PAGE
    assert all(memory[at] == 1 for at in range(0, len(memory), holding.PIECE))
    assert memory[holding.PAGE] == 0, "what was given back is empty"


def test_memory_is_held_until_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "COMMAND", ("-c", "import sys; print('40 MiB'); sys.stdin.read()"))
    with holding.held_memory() as said:
        assert said == "40 MiB"


def test_a_machine_that_cannot_hold_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "COMMAND", ("-c", "raise SystemExit(1)"))
    with holding.held_memory() as said:
        assert said == "no memory is held"
