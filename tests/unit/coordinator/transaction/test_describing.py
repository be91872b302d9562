from __future__ import annotations

import pytest

from tests.unit.coordinator.transaction.driver import P0, P1, Driver
from tidelog.coordinator.group.consumer.subscription_regex import InvalidRegex
from tidelog.coordinator.transaction.describing import (
    Filters,
    count_by_state,
    describe,
    list_matching,
    open_transactions,
)
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import TopicPartition


def some() -> Driver:
    """a is Ongoing since 1,000,000, b is Ongoing since 1,005,000, c is Empty, and it is 1,010,000."""
    driver = Driver()
    a, _ = driver.producer("a-1"), driver.producer("c")
    driver.add(a, P0, TopicPartition("u", 4), P1, transactional_id="a-1")
    driver.advance(5_000)
    driver.add(driver.producer("b-1"), P0, transactional_id="b-1")
    driver.advance(4_999)
    driver.now += 1
    return driver


def listed(driver: Driver, filters: Filters) -> list[str]:
    return [state.transactional_id for state in list_matching(driver.machine.transactions.values(), filters, driver.now)]


def test_an_id_is_described_with_its_partitions_by_topic() -> None:
    found = describe(some().machine, "a-1")
    assert (found.error_code, found.transaction_state, found.producer_id, found.producer_epoch) == (0, "Ongoing", 1000, 0)
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (60_000, 1_000_000)
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0, 1]), ("u", [4])]


def test_ids_that_are_not_there_say_so() -> None:
    assert describe(some().machine, "zz").error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    assert describe(some().machine, "").error_code == E.INVALID_REQUEST


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(), ["a-1", "c", "b-1"]),
        (Filters(states=["Ongoing"]), ["a-1", "b-1"]),
        (Filters(states=["Empty", "NoSuchState"]), ["c"]),
        (Filters(states=["NoSuchState"]), []),
        (Filters(producer_ids=[1000, 5]), ["a-1"]),
        (Filters(longer_than_ms=9_999), ["a-1", "c"]),
        (Filters(longer_than_ms=10_000), ["c"]),
        (Filters(longer_than_ms=0, states=["Ongoing"]), ["a-1", "b-1"]),
        (Filters(pattern="[ab]-.*"), ["a-1", "b-1"]),
        (Filters(pattern="a"), []),
        (Filters(pattern=""), ["a-1", "c", "b-1"]),
        (Filters(states=["Ongoing"], producer_ids=[1002], pattern=".*1"), ["b-1"]),
    ],
)
def test_a_list_holds_what_fits_all_filters(filters: Filters, found: list[str]) -> None:
    assert listed(some(), filters) == found


def test_states_that_nobody_knows_are_named_and_a_bad_pattern_is_refused() -> None:
    assert Filters(states=["Ongoing", "NoSuchState"]).unknown_states() == ["NoSuchState"]
    with pytest.raises(InvalidRegex):
        listed(some(), Filters(pattern="(a"))


def test_figures_tell_how_many_there_are_and_which_is_the_oldest() -> None:
    driver = some()
    counts = count_by_state([driver.machine])
    assert (counts[TransactionState.ONGOING], counts[TransactionState.EMPTY], sum(counts.values())) == (2, 1, 3)
    assert [known.transactional_id for known in open_transactions([driver.machine])] == ["a-1", "b-1"]
