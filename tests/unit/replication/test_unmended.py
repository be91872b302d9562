"""Consumers wait for a damaged batch that another replica may have; they get an error where it is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.model.errors import ErrorCode
from tidelog.replication.unmended import MOST_BYTES, Unmended, never
from tidelog.storage.rotten_range import RottenRange

ROTTEN = RottenRange(100, 300, 5, 9)
WAIT, GONE = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE


def log(*ranges: RottenRange) -> Any:
    return SimpleNamespace(segments=[SimpleNamespace(rotten=()), SimpleNamespace(rotten=ranges)])


def error(stored: Any, offset: int, *, replicas: tuple[int, ...] = (1, 2), given_up: RottenRange | None = None) -> ErrorCode:
    unmended = Unmended()
    if given_up is not None:
        unmended.give_up(given_up)
    return unmended.error_for_consumers(replicas, stored, offset)


@pytest.mark.parametrize("offset", [4, 5, 8])
def test_consumers_wait_while_another_replica_may_have_the_batch(offset: int) -> None:
    assert error(log(ROTTEN), offset) is WAIT


def test_the_only_replica_says_that_the_batch_is_gone() -> None:
    assert error(log(ROTTEN), 5, replicas=(1,)) is GONE


def test_damage_that_every_replica_was_asked_about_is_gone_and_other_damage_is_not() -> None:
    behind = RottenRange(400, 500, 12, 14)
    assert error(log(ROTTEN, behind), 5, given_up=ROTTEN) is GONE
    assert error(log(ROTTEN, behind), 9, given_up=ROTTEN) is WAIT


def test_a_range_that_is_damaged_once_more_is_no_old_one() -> None:
    unmended = Unmended()
    unmended.give_up(ROTTEN)
    unmended.keep([ROTTEN])
    assert unmended.error_for_consumers((1, 2), log(ROTTEN), 5) is GONE
    unmended.keep([])
    assert unmended.error_for_consumers((1, 2), log(ROTTEN), 5) is WAIT


def test_bytes_that_break_off_but_are_no_known_damage_are_gone() -> None:
    assert error(log(ROTTEN), 9) is GONE


@pytest.mark.parametrize("end", [100, 100 + MOST_BYTES + 1], ids=["missing", "too long"])
def test_ranges_that_no_replica_can_replace(end: int) -> None:
    damaged = ROTTEN._replace(end=end)
    assert never(ROTTEN) is None and never(damaged) is not None
    assert error(log(damaged), 5) is GONE
