"""How far a log may be compacted, and whether that is worth it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.storage.test_cleaner import COMPACT, append, new_log, roll
from tidelog.storage.cleanable_ratio import CleanableRange, cleanable_range


def test_how_far_a_log_may_be_cleaned(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for i in range(4):
        append(log, ("a", "1"), now_ms=1000 * (i + 1))
        roll(log)
    sizes = [segment.size for segment in log.segments]
    whole = cleanable_range(log, None, 10_000)
    assert (whole.first_dirty_offset, whole.first_uncleanable_offset) == (0, 4)
    assert (whole.clean_bytes, whole.cleanable_bytes) == (0, sum(sizes))
    later = cleanable_range(log, 3, 10_000)
    assert (later.first_dirty_offset, later.clean_bytes, later.cleanable_bytes) == (3, sum(sizes[:3]), sizes[3])
    log.set_config(replace(COMPACT, min_compaction_lag_ms=7000))
    assert cleanable_range(log, None, 10_000).first_uncleanable_offset == 3, "records younger than min.compaction.lag.ms"
    log.set_config(COMPACT)
    log.update_high_watermark(2)
    assert cleanable_range(log, None, 10_000).first_uncleanable_offset == 2, "records that are not stable"
    log.update_high_watermark(4)
    log.segments[1].sealed = False
    assert cleanable_range(log, None, 10_000).first_uncleanable_offset == 1, "segments that are not on stable storage"


def test_open_transactions_are_not_cleaned(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, ("a", "1"))
    roll(log)
    append(log, ("a", "2"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    roll(log)
    assert cleanable_range(log, None, 0).first_uncleanable_offset == 1


@pytest.mark.parametrize(
    ("clean", "dirty", "overdue", "due"),
    [(50, 50, False, False), (49, 51, False, True), (99, 1, False, False), (99, 1, True, True), (100, 0, True, False)],
)
def test_a_log_is_cleaned_when_it_is_dirty_enough_or_overdue(clean: int, dirty: int, overdue: bool, due: bool) -> None:
    assert CleanableRange(0, 10, clean, dirty, overdue, checkpoint_is_wrong=False).is_due(0.5) is due
