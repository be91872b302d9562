"""Memory that the host of a virtual machine cannot take back while a bench runs; Linux only.

A guest with free page reporting gives its free blocks of 2 MiB back to the host, and the next write to such a page faults there:
a file that grows, which is most of what a broker does, is then up to twice as dear as on memory that was used a moment before.
So a process of its own takes nearly all free memory, which makes the host provide it, and gives back all but one page in each
piece of 256 KiB: free blocks stay smaller than those that are reported. With swap, the pages that stay may be swapped out.

``python -m bench.pair.holding`` prints a line when it has the memory, and holds it until its standard input ends.
"""

from __future__ import annotations

import contextlib
import mmap
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE, PIECE, CHUNK = 4096, 256 << 10, 64 << 20
LEFT_BYTES = 1 << 30
"""Free memory that is never taken, for what else runs."""
TRIES = 3
"""What is taken makes the kernel drop some of its cache, which leaves whole blocks for another try."""
REPORTED_ORDER = 9
"""The smallest free block that Linux reports: 2 to this power of pages."""
MADV_NOHUGEPAGE = 15
COMMAND = ("-m", "bench.pair.holding")


def available(meminfo: str) -> int:
    """Bytes that ``/proc/meminfo`` says are available."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise ValueError("/proc/meminfo does not have MemAvailable")


def whole_blocks(buddyinfo: str) -> int:
    """Bytes in free blocks that are large enough to be reported, from ``/proc/buddyinfo``."""
    pages = 0
    for line in buddyinfo.splitlines():
        counts = [int(each) for each in line.partition("zone")[2].split()[1:]]
        pages += sum(count << order for order, count in enumerate(counts) if order >= REPORTED_ORDER)
    return pages * PAGE


def hold(amount: int) -> mmap.mmap:
    """``amount`` bytes, each page written once, all but one page a piece given back. OSError where the kernel refuses."""
    memory = mmap.mmap(-1, amount, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(MADV_NOHUGEPAGE)
    ones = b"\1" * CHUNK
    for at in range(0, amount, CHUNK):
        memory[at : at + CHUNK] = ones[: min(CHUNK, amount - at)]
    for at in range(0, amount, PIECE):
        if (rest := min(PIECE, amount - at) - PAGE) > 0:
            memory.madvise(mmap.MADV_DONTNEED, at + PAGE, rest)
    return memory


@contextlib.contextmanager
def held_memory() -> Iterator[str]:
    """A process of its own holds what is free, until the block ends. Yields what it said: how much it holds and what is left in
    whole blocks, or why it holds nothing."""
    with subprocess.Popen([sys.executable, *COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip() or "no memory is held"
        finally:
            process.stdin.close()


def main() -> None:
    held: list[mmap.mmap] = []
    blocks = 0
    for _ in range(TRIES):
        amount = available(Path("/proc/meminfo").read_text()) - LEFT_BYTES
        blocks = whole_blocks(Path("/proc/buddyinfo").read_text())
        if amount < CHUNK or blocks < LEFT_BYTES:
            break
        held.append(hold(amount - amount % CHUNK))
    blocks = whole_blocks(Path("/proc/buddyinfo").read_text())
    print(
        f"{sum(map(len, held)) >> 20} MiB were touched and are held in pieces, {blocks >> 20} MiB are free in whole blocks",
        flush=True,
    )
    sys.stdin.read()


if __name__ == "__main__":
    main()
