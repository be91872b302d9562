"""The search for the next valid batch: what it finds, what it passes over, what it may cost."""

import random
import struct

import pytest

from sim.workload import batch
from tidelog.records.batch import BatchHeader
from tidelog.storage.batch_search import CANDIDATE_WORK, FREE_WORK, WORK_PER_BYTE, BatchReader, BatchSearch
from tidelog.testing.simulation.disk import SimDisk

PATH = "/data/segment"
LAST = 1 << 20
PIECE = 4096


class Found:
    def __init__(self, data: bytes, *, chunk_bytes: int = PIECE, stated_end: int | None = None) -> None:
        disk = SimDisk()
        disk.make_dirs("/data")
        file = disk.open(PATH, create=True)
        file.write(0, data)
        self.reader = BatchReader(file, len(data), chunk_bytes)
        self.search = BatchSearch(self.reader, 0, lambda header: header.base_offset > 0, 0, LAST)
        run, self.steps, before, self.largest = self.search.run(stated_end), 0, 0, 0
        self.header: BatchHeader | None = None
        while True:
            try:
                next(run)
            except StopIteration as end:
                self.header = end.value
                return
            self.steps += 1
            self.largest = max(self.largest, self.reader.work - before)
            before = self.reader.work

    @property
    def position(self) -> int:
        return -1 if self.header is None else self.header.position


def crafted(size: int, offset: int = 5, *, magic: int = 2, attributes: int = 0, delta: int = 0, count: int = 1) -> bytes:
    """A header without its records, and with a wrong checksum."""
    return struct.pack(">qiibIhiqqqhii", offset, size - 12, 0, magic, 1, attributes, delta, 1, 1, -1, -1, -1, count)


@pytest.mark.parametrize("at", [1, 60, 4035, 4036, 4096, 4100, 9000])
def test_a_batch_is_found_wherever_it_begins(at: int) -> None:
    data = random.Random(at).randbytes(at) + bytes(batch(2, base_offset=7, value=bytes(3000)))
    assert Found(data).position == at


def test_every_kind_of_healthy_header_counts_as_one() -> None:
    for made in (
        batch(3, base_offset=9, producer=(4, 1, 2), transactional=True),
        batch(1, base_offset=LAST - 1, leader_epoch=5),
        batch(1, base_offset=1, timestamp_ms=-1),
    ):
        assert Found(b"." * 100 + bytes(made)).position == 100


def test_where_the_bad_batch_claims_to_end_is_looked_at_first() -> None:
    data = b"." * 500 + bytes(batch(1, base_offset=7))
    found = Found(data, stated_end=500)
    assert (found.position, found.reader.work < 2 * len(data)) == (500, True)


def test_a_batch_longer_than_a_piece_is_hashed_in_pieces() -> None:
    found = Found(b"." * 10 + bytes(batch(1, base_offset=7, value=bytes(100_000))))
    assert found.position == 10
    assert found.largest <= 3 * PIECE + CANDIDATE_WORK


@pytest.mark.parametrize(
    "unlikely",
    [
        crafted(61, magic=1),
        crafted(60),
        crafted(1 << 30),
        crafted(61, offset=LAST + 1),
        crafted(61, attributes=7),
        crafted(61, attributes=0x100),
        crafted(61, delta=-1),
        crafted(61, count=-1),
        crafted(61, count=5),
    ],
)
def test_the_body_of_what_cannot_be_a_batch_is_not_read(unlikely: bytes) -> None:
    data = b"." + unlikely + b"." * 100_000
    found = Found(data)
    assert (found.position, found.search.gave_up) == (-1, False)
    assert found.reader.work < len(data) * 1.1 + 2 * CANDIDATE_WORK


@pytest.mark.parametrize("size", [61, 4096, 1 << 20])
def test_bytes_that_look_like_headers_cannot_cost_more_than_the_allowance(size: int) -> None:
    rows = [crafted(size, offset) for offset in range(1, 50_000)]
    data = b"".join(rows) + bytes(1 << 20)
    found = Found(data, chunk_bytes=32 * 1024)
    limit = FREE_WORK + WORK_PER_BYTE * len(data)
    assert found.search.gave_up
    assert found.reader.work <= limit + size + 3 * 32 * 1024 + CANDIDATE_WORK
    assert found.largest <= 4 * 32 * 1024 + CANDIDATE_WORK, "one step is short, whatever the headers state"


def test_zeros_cost_one_read() -> None:
    found = Found(bytes(1 << 20))
    assert (found.header, found.search.gave_up) == (None, False)
    assert found.reader.work < 1.1 * (1 << 20)
