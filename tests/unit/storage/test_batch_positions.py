"""The last batches of a segment, in memory."""

from tidelog.storage.batch_positions import LIMIT, RecentBatches


def of(count: int, *, first: int = 10) -> RecentBatches:
    """Batches of two offsets and 100 bytes each; the first begins at 500."""
    recent = RecentBatches(first)
    for number in range(count):
        recent.add(first + 2 * number, first + 2 * number + 1, 500 + 100 * number)
    return recent


def test_a_batch_is_found_by_each_of_its_offsets() -> None:
    recent = of(3)
    assert [recent.position_of(offset) for offset in range(9, 17)] == [-1, 500, 500, 600, 600, 700, 700, -1]


def test_boundaries_are_starts_of_batches_that_are_known() -> None:
    recent = of(3)
    assert [recent.boundary_within(500, limit) for limit in (499, 500, 599, 600, 650, 9000)] == [-1, -1, -1, 600, 600, 700]


def test_the_end_of_a_read_is_past_what_it_reaches() -> None:
    recent = of(3)
    assert [recent.end_offset_at(position) for position in (400, 500, 501, 600, 601, 9000)] == [-1, -1, 12, 12, 14, 16]


def test_the_older_half_goes_at_the_limit() -> None:
    recent = of(LIMIT + 1, first=0)
    assert (recent.floor, recent.position_of(LIMIT - 1)) == (LIMIT, -1)
    assert recent.position_of(LIMIT) == 500 + 100 * (LIMIT // 2)


def test_an_empty_one_knows_nothing() -> None:
    recent = RecentBatches(7)
    assert (recent.position_of(7), recent.boundary_within(0, 100), recent.end_offset_at(100)) == (-1, -1, -1)
