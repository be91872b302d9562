"""SharePartition: deliveries, acknowledgements, locks, the start offset, and what a load finds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidelog.model.errors import ErrorCode
from tidelog.replication.share.acquiring import Want
from tidelog.replication.share.record_state import Acknowledgement, AckType, RecordState, StateBatch
from tidelog.replication.share.share_partition import Change, ShareLimits, SharePartition

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
ANN, BOB = "ann", "bob"
TENS = [(first, first + 9) for first in range(0, 100, 10)]


class Shared:
    """A share partition over a log of ten batches of ten records."""

    def __init__(
        self,
        start: int = 0,
        batches: tuple[StateBatch, ...] = (),
        limits: ShareLimits | None = None,
        log: list[tuple[int, int]] | None = None,
    ) -> None:
        self.limits = limits or ShareLimits()
        self.log = TENS if log is None else log
        self.machine = SharePartition(start, batches, lambda: self.limits)
        self.now_ms = 1_000

    def fetch(
        self,
        member: str = ANN,
        most: int = 500,
        *,
        exact: bool = False,
        batch_size: int = 500,
        read: int = 99,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> list[tuple[int, int, int]]:
        """Reads up to offset ``read`` from where the machine wants to, and acquires."""
        offset = self.machine.next_fetch_offset()
        batches = [one for one in self.log if one[1] >= offset and one[0] <= read]
        want = Want(member, most, batch_size, exact)
        got = self.machine.acquire(offset, batches, want, self.now_ms, aborted)
        self.machine.check()
        return [(one.first, one.last, one.delivery_count) for one in got]

    def ack(self, first: int, last: int, *types: AckType, member: str = ANN) -> Change:
        made = self.machine.acknowledge(member, [Acknowledgement(first, last, types)], self.now_ms)
        self.machine.check()
        assert isinstance(made, Change), made
        return made

    def acked(self, first: int, last: int, *types: AckType, member: str = ANN) -> Change:
        change = self.ack(first, last, *types, member=member)
        self.done(change)
        return change

    def done(self, change: Change, *, persisted: bool = True) -> None:
        self.machine.complete(change, self.now_ms, persisted=persisted)
        self.machine.check()


def refused(shared: Shared, first: int, last: int, kind: AckType = AckType.ACCEPT, member: str = ANN) -> ErrorCode:
    answer = shared.machine.acknowledge(member, [Acknowledgement(first, last, (kind,))], shared.now_ms)
    shared.machine.check()
    assert isinstance(answer, ErrorCode)
    return answer


def test_records_are_given_to_one_member_at_a_time() -> None:
    shared = Shared()
    assert shared.fetch(ANN, most=15) == [(0, 19, 1)]
    assert shared.fetch(BOB, most=5) == [(20, 29, 1)]
    assert shared.machine.in_flight == 30


def test_new_ranges_end_at_batches_of_the_log() -> None:
    assert Shared().fetch(most=50, batch_size=15) == [(0, 19, 1), (20, 39, 1), (40, 49, 1)]


def test_record_limit_gives_exactly_as_many_as_asked_for() -> None:
    shared = Shared()
    assert shared.fetch(most=15, exact=True) == [(0, 14, 1)]
    assert shared.machine.next_fetch_offset() == 15
    assert shared.fetch(BOB, most=15, exact=True) == [(15, 19, 1), (20, 29, 1)]


def test_accepted_records_move_the_start_once_that_is_durable() -> None:
    shared = Shared()
    shared.fetch(most=20)
    change = shared.ack(0, 9, AckType.ACCEPT)
    assert change[:3] == ((StateBatch(0, 9, ACKNOWLEDGED, 1),), 0, 10)
    assert shared.machine.start_offset == 0
    shared.done(change)
    assert (shared.machine.start_offset, shared.machine.delivery_complete_count) == (10, 0)
    shared.acked(10, 19, AckType.ACCEPT)
    assert (shared.machine.start_offset, shared.machine.end_offset, shared.machine.in_flight) == (20, 19, 0)


def test_records_finished_out_of_order_are_counted_above_the_start() -> None:
    shared = Shared()
    shared.fetch(most=30)
    shared.acked(10, 19, AckType.ACCEPT)
    assert (shared.machine.start_offset, shared.machine.delivery_complete_count) == (0, 10)
    shared.acked(0, 9, AckType.REJECT)
    assert (shared.machine.start_offset, shared.machine.delivery_complete_count) == (20, 0)


def test_each_record_of_a_batch_may_have_its_own_type() -> None:
    shared = Shared()
    shared.fetch(most=5, exact=True)
    change = shared.acked(0, 4, AckType.ACCEPT, AckType.ACCEPT, AckType.RELEASE, AckType.REJECT, AckType.GAP)
    assert change.batches == (
        StateBatch(0, 1, ACKNOWLEDGED, 1),
        StateBatch(2, 2, AVAILABLE, 1),
        StateBatch(3, 4, ARCHIVED, 1),
    )
    assert shared.machine.start_offset == 2
    assert shared.fetch(BOB, most=1, exact=True) == [(2, 2, 2)]


def test_released_records_are_delivered_again_until_the_limit() -> None:
    shared = Shared(limits=ShareLimits(delivery_count=2))
    shared.fetch(most=10)
    shared.acked(0, 9, AckType.RELEASE)
    assert shared.fetch(BOB, most=10) == [(0, 9, 2)]
    assert shared.acked(0, 9, AckType.RELEASE, member=BOB).batches == (StateBatch(0, 9, ARCHIVED, 2),)
    assert shared.machine.start_offset == 10


@pytest.mark.parametrize(
    ("first", "last", "member", "error"),
    [
        (0, 9, BOB, ErrorCode.INVALID_RECORD_STATE),
        (0, 20, ANN, ErrorCode.INVALID_REQUEST),
        (30, 39, ANN, ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_the_holder_acknowledges_what_was_delivered(first: int, last: int, member: str, error: ErrorCode) -> None:
    shared = Shared()
    shared.fetch(most=20)
    assert refused(shared, first, last, member=member) is error


def test_an_acknowledgement_with_one_bad_batch_changes_nothing() -> None:
    shared = Shared()
    shared.fetch(most=10)
    both = [Acknowledgement(0, 4, (AckType.ACCEPT,)), Acknowledgement(50, 60, (AckType.ACCEPT,))]
    assert shared.machine.acknowledge(ANN, both, shared.now_ms) is ErrorCode.INVALID_REQUEST
    assert shared.machine.spans() == [(0, 9, ACQUIRED, 1, ANN)]


def test_nothing_in_flight_is_no_valid_state() -> None:
    assert refused(Shared(), 0, 0) is ErrorCode.INVALID_RECORD_STATE


def test_records_are_not_available_while_their_release_is_persisted() -> None:
    shared = Shared()
    shared.fetch(most=10)
    change = shared.ack(0, 9, AckType.RELEASE)
    assert refused(shared, 0, 9) is ErrorCode.INVALID_RECORD_STATE
    assert shared.machine.next_fetch_offset() == 10
    shared.done(change)
    assert shared.machine.next_fetch_offset() == 0


def test_a_change_that_was_not_persisted_is_undone() -> None:
    shared = Shared()
    shared.fetch(most=10)
    shared.done(shared.ack(0, 4, AckType.ACCEPT), persisted=False)
    assert {state for _, _, state, _, _ in shared.machine.spans()} == {ACQUIRED}
    assert shared.machine.delivery_complete_count == 0
    shared.acked(0, 9, AckType.ACCEPT)
    assert shared.machine.start_offset == 10


def test_a_lock_that_timed_out_during_a_failed_change_does_not_come_back() -> None:
    shared = Shared(limits=ShareLimits(lock_ms=100))
    shared.fetch(most=10)
    change = shared.ack(0, 9, AckType.ACCEPT)
    shared.now_ms += 100
    assert shared.machine.expire(shared.now_ms) is None
    shared.done(change, persisted=False)
    assert shared.fetch(BOB, most=10) == [(0, 9, 2)]


def test_a_lock_times_out_and_the_count_stays() -> None:
    shared = Shared(limits=ShareLimits(lock_ms=100))
    shared.fetch(most=10)
    assert shared.machine.next_deadline() == shared.now_ms + 100
    shared.now_ms += 99
    assert shared.machine.expire(shared.now_ms) is None
    shared.now_ms += 1
    change = shared.machine.expire(shared.now_ms)
    assert change is not None and change.batches == (StateBatch(0, 9, AVAILABLE, 1),)
    shared.done(change)
    assert refused(shared, 0, 9) is ErrorCode.INVALID_RECORD_STATE
    assert shared.fetch(BOB, most=10) == [(0, 9, 2)]


def test_a_renewed_lock_begins_again_and_persists_nothing() -> None:
    shared = Shared(limits=ShareLimits(lock_ms=100))
    shared.fetch(most=10)
    shared.now_ms += 90
    assert shared.ack(0, 4, AckType.RENEW).batches == ()
    shared.now_ms += 10
    change = shared.machine.expire(shared.now_ms)
    assert change is not None and change.batches == (StateBatch(5, 9, AVAILABLE, 1),)
    shared.limits = ShareLimits(renews=False)
    assert refused(shared, 0, 4, AckType.RENEW) is ErrorCode.INVALID_RECORD_STATE


def test_a_closed_session_releases_what_its_member_holds() -> None:
    shared = Shared()
    shared.fetch(ANN, most=10)
    shared.fetch(BOB, most=10)
    change = shared.machine.release(ANN)
    assert change is not None and change.batches == (StateBatch(0, 9, AVAILABLE, 1),)
    shared.done(change)
    assert shared.machine.release(ANN) is None
    assert shared.fetch(BOB, most=10) == [(0, 9, 2)]


def test_the_span_in_flight_is_limited() -> None:
    shared = Shared(limits=ShareLimits(max_locks=20))
    assert shared.fetch() == [(0, 19, 1)]
    assert not shared.machine.can_acquire
    assert shared.fetch() == []
    shared.acked(10, 19, AckType.ACCEPT)
    assert not shared.machine.can_acquire
    shared.acked(0, 4, AckType.RELEASE)
    assert shared.machine.can_acquire
    assert shared.fetch(BOB) == [(0, 4, 2)]


def test_records_that_keep_failing_are_delivered_in_ever_smaller_parts() -> None:
    shared = Shared(limits=ShareLimits(delivery_count=10), log=[(0, 499), (500, 599)])
    sizes = []
    for _ in range(10):
        got = shared.fetch(most=500, read=599)
        assert got[0][0] == 0
        sizes.append(sum(last - first + 1 for first, last, _ in got))
        shared.acked(got[0][0], got[-1][1], AckType.RELEASE)
    assert sizes == [500, 500, 500, 500, 500, 250, 125, 62, 31, 1]
    assert shared.machine.start_offset == 1


def test_log_start_drops_what_lies_below() -> None:
    shared = Shared()
    shared.fetch(most=30)
    shared.acked(20, 29, AckType.ACCEPT)
    assert shared.machine.move_start(15)
    shared.machine.check()
    assert (shared.machine.start_offset, shared.machine.delivery_complete_count) == (15, 10)
    change = shared.acked(10, 19, AckType.ACCEPT)
    assert change.batches == (StateBatch(15, 19, ACKNOWLEDGED, 1),)
    assert shared.machine.start_offset == 30
    assert shared.acked(0, 9, AckType.ACCEPT).batches == ()
    assert not shared.machine.move_start(20)


def test_a_change_survives_a_log_start_that_overtakes_it() -> None:
    shared = Shared()
    shared.fetch(most=30)
    change = shared.ack(0, 19, AckType.ACCEPT)
    shared.machine.move_start(10)
    shared.done(change)
    assert shared.machine.start_offset == 20


def test_compacted_records_are_given_up() -> None:
    shared = Shared()
    shared.fetch(most=30)
    shared.acked(0, 29, AckType.RELEASE)
    shared.log = [(15, 19), (25, 29)]
    assert shared.fetch(BOB, most=30) == [(15, 29, 2)]
    assert shared.machine.start_offset == 15


def test_records_of_aborted_transactions_are_not_delivered() -> None:
    shared = Shared()
    assert shared.fetch(most=30, aborted=((0, 9), (15, 16))) == [(10, 14, 1), (17, 29, 1)]
    assert shared.machine.start_offset == 10
    assert shared.machine.delivery_complete_count == 2
    assert Shared().fetch(most=10, aborted=((0, 9),)) == []


def test_a_loaded_state_goes_on_where_it_was() -> None:
    stored = (StateBatch(5, 9, ACKNOWLEDGED, 1), StateBatch(15, 19, AVAILABLE, 2), StateBatch(20, 24, ARCHIVED, 5))
    shared = Shared(5, stored)
    assert (shared.machine.start_offset, shared.machine.end_offset) == (10, 24)
    assert shared.machine.delivery_complete_count == 5
    assert shared.machine.next_fetch_offset() == 10
    assert shared.fetch(most=40) == [(10, 14, 1), (15, 19, 3), (25, 59, 1)]


def test_holes_of_a_loaded_state_are_read_once() -> None:
    shared = Shared(
        0, (StateBatch(20, 29, AVAILABLE, 1), StateBatch(40, 49, ACKNOWLEDGED, 1)), log=[(10, 14), (20, 29), (50, 59)]
    )
    assert shared.machine.next_fetch_offset() == 0
    assert shared.fetch(most=1) == [(10, 14, 1)]
    assert shared.machine.next_fetch_offset() == 15
    assert shared.fetch(most=1) == [(20, 29, 2)]
    assert shared.machine.next_fetch_offset() == 30
    assert shared.fetch(most=5) == [(50, 59, 1)]
    shared.acked(10, 14, AckType.ACCEPT)
    shared.acked(20, 29, AckType.ACCEPT)
    assert shared.machine.start_offset == 50


def test_a_stored_state_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="overlaps what lies below 5"):
        SharePartition(5, [StateBatch(0, 9, AVAILABLE, 1)], ShareLimits)
    with pytest.raises(ValueError, match="overlaps"):
        SharePartition(0, [StateBatch(0, 9, AVAILABLE, 1), StateBatch(9, 10, AVAILABLE, 1)], ShareLimits)


def test_a_lock_that_is_renewed_for_less_time_ends_when_that_is_over() -> None:
    shared = Shared(limits=ShareLimits(lock_ms=60_000))
    shared.fetch()
    shared.limits = ShareLimits(lock_ms=15_000)
    shared.ack(0, 99, AckType.RENEW)
    assert shared.machine.next_deadline() == shared.now_ms + 15_000
    assert shared.machine.expire(shared.now_ms + 15_000) is not None


def test_an_acknowledgement_does_not_end_where_nothing_was_delivered() -> None:
    shared = Shared(log=[(0, 4), (10, 14)])
    shared.fetch(most=5)
    shared.fetch()
    assert refused(shared, 0, 7) is ErrorCode.INVALID_REQUEST
    assert isinstance(shared.ack(0, 14, AckType.ACCEPT), Change)


def test_an_offset_that_is_acknowledged_twice_in_one_request_is_refused() -> None:
    shared = Shared()
    shared.fetch(most=10)
    acks = [Acknowledgement(0, 4, (AckType.ACCEPT,)), Acknowledgement(4, 9, (AckType.ACCEPT,))]
    assert shared.machine.acknowledge(ANN, acks, shared.now_ms) is ErrorCode.INVALID_RECORD_STATE
    assert shared.machine.spans() == [(0, 9, ACQUIRED, 1, ANN)]
