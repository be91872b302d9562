"""A rotten range in the place of its batches."""

from tidelog.storage.batch_span import span_of_rotten
from tidelog.storage.rotten_range import RottenRange


def test_a_rotten_range_covers_its_offsets_and_has_no_timestamp() -> None:
    span = span_of_rotten(RottenRange(100, 250, 7, 12))
    assert (span.position, span.end, span.base_offset, span.last_offset, span.max_timestamp) == (100, 250, 7, 11, -1)
