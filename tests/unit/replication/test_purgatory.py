from __future__ import annotations

from tidelog.replication.purgatory import STATE_CHANGED, Parked, ParkedAppend, ParkedFetch, Purgatory, tell_watchers


class Spot:
    """A partition as parked requests see it."""

    def __init__(self) -> None:
        self.watchers: dict[Parked, object] = {}
        self.last_stable_offset = 0
        self.safe_to = 0

    def is_safe(self, last_offset: int, acks: int) -> bool:
        return last_offset < self.safe_to


class Wanted:
    def __init__(self, number: int) -> None:
        self.number = number
        self.read_stable_offset = 0
        self.held_back = False


def touched(parked: ParkedFetch) -> list[int]:
    return [wanted.number for wanted in parked.touched]


def fetch(*spots: Spot, missing: int = 1, deadline_ms: int = 100, committed: bool = False) -> ParkedFetch:
    parked = ParkedFetch(deadline_ms, missing, committed=committed)
    for index, spot in enumerate(spots):
        parked.watch(spot, Wanted(index))
    return parked


def test_a_fetch_finishes_when_its_bytes_are_there() -> None:
    spot = Spot()
    parked = fetch(spot, missing=100)
    tell_watchers(spot, 60)
    assert not parked.done
    tell_watchers(spot, 40)
    assert parked.done and not parked.expired and touched(parked) == [0]


def test_bytes_of_several_partitions_add_up() -> None:
    one, two = Spot(), Spot()
    parked = fetch(one, two, missing=100)
    tell_watchers(two, 60)
    tell_watchers(one, 60)
    assert parked.done and touched(parked) == [1, 0]


def test_a_change_of_state_finishes_a_fetch_at_once() -> None:
    spot = Spot()
    parked = fetch(spot, missing=1 << 20)
    tell_watchers(spot, STATE_CHANGED)
    assert parked.done


def test_a_finished_request_watches_nothing_and_tells_once() -> None:
    one, two = Spot(), Spot()
    parked = fetch(one, two)
    told: list[int] = []
    parked.on_done = lambda: told.append(1)
    tell_watchers(one, 1)
    parked.finish()
    assert told == [1]
    assert not one.watchers and not two.watchers


def test_what_a_transaction_held_back_wakes_a_reader_of_committed_records_whatever_its_marker_weighs() -> None:
    spot = Spot()
    parked = fetch(spot, missing=10_000, committed=True)
    tell_watchers(spot, 20_000)
    assert not parked.done
    spot.last_stable_offset = 50
    tell_watchers(spot, 78)
    assert parked.done and not parked.expired


def test_records_of_an_open_transaction_do_not_wake_a_reader_of_committed_ones() -> None:
    spot = Spot()
    parked = fetch(spot, committed=True)
    tell_watchers(spot, 500)
    assert not parked.done
    spot.last_stable_offset = 9
    tell_watchers(spot, 78)
    assert parked.done


def test_a_change_touches_only_those_who_watch_that_partition() -> None:
    one, two = Spot(), Spot()
    here, there = fetch(one), fetch(two)
    tell_watchers(one, 10)
    assert here.done and not there.done and not there.touched


def test_an_append_waits_for_all_its_partitions() -> None:
    one, two = Spot(), Spot()
    parked = ParkedAppend(100, -1)
    parked.watch(one, 0, last_offset=4)
    parked.watch(two, 1, last_offset=9)
    one.safe_to = 5
    tell_watchers(one, 0)
    assert not parked.done
    two.safe_to = 9
    tell_watchers(two, 0)
    assert not parked.done, "offset 9 is not below 9"
    two.safe_to = 10
    tell_watchers(two, 0)
    assert parked.done and not one.watchers and not two.watchers


def test_a_partition_that_is_lost_counts_as_decided_for_an_append() -> None:
    one, two = Spot(), Spot()
    parked = ParkedAppend(100, -1)
    parked.watch(one, 0, last_offset=4)
    parked.watch(two, 1, last_offset=4)
    tell_watchers(one, STATE_CHANGED)
    assert not parked.done
    tell_watchers(two, STATE_CHANGED)
    assert parked.done


def test_requests_expire_in_order_of_their_deadlines() -> None:
    purgatory = Purgatory()
    late, soon = fetch(deadline_ms=300), fetch(deadline_ms=100)
    purgatory.park(late)
    purgatory.park(soon)
    assert purgatory.next_deadline() == 100
    assert purgatory.expire(99) == 0
    assert purgatory.expire(100) == 1
    assert soon.expired and soon.done and not late.done
    assert purgatory.next_deadline() == 300


def test_a_request_that_finished_has_no_deadline_any_more() -> None:
    purgatory = Purgatory()
    parked = fetch(deadline_ms=100)
    purgatory.park(parked)
    parked.finish()
    assert purgatory.next_deadline() is None
    assert purgatory.expire(1000) == 0 and not parked.expired


def test_the_purgatory_does_not_keep_what_has_finished() -> None:
    purgatory = Purgatory()
    waiting = fetch(deadline_ms=1 << 40)
    purgatory.park(waiting)
    for number in range(10_000):
        parked = fetch(deadline_ms=1000 + number)
        purgatory.park(parked)
        parked.finish()
    assert len(purgatory._heap) < 3000
    assert len(purgatory) == 1
