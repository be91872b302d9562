"""HostedShare: loading, persisting in order, and the end of a leadership."""

from __future__ import annotations

import pytest

from tests.unit.broker.shares.hosted import Hosted
from tidelog.broker.shares.hosted_share import Persisting, Phase, told
from tidelog.coordinator.share.coordinator import Answer, Found
from tidelog.model.errors import ErrorCode
from tidelog.replication.share.dead_letters import Cause, DeadLetter
from tidelog.replication.share.record_state import Acknowledgement, RecordState, StateBatch
from tidelog.replication.share.share_partition import ShareLimits

ACCEPT = (1,)


def test_a_group_without_an_offset_begins_where_it_says() -> None:
    assert Hosted().load().share.machine.start_offset == 0
    latest = Hosted()
    latest.settings.reset_to = "latest"
    assert latest.load().share.machine.start_offset == 15
    lately = Hosted()
    lately.settings.reset_to = 10_000
    assert lately.load().share.machine.start_offset == 0
    none = Hosted()
    none.clock.now, none.settings.reset_to = 50_000, 10
    assert none.load().share.error is ErrorCode.OFFSET_NOT_AVAILABLE


def test_a_stored_state_goes_on() -> None:
    hosted = Hosted()
    hosted.store.stored = Answer(stored=Found(3, 0, 5, 0, (StateBatch(5, 9, RecordState.ACKNOWLEDGED, 1),)))
    assert hosted.load().share.machine.start_offset == 10


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.NONE, ErrorCode.NONE),
    ],
)
def test_errors_of_the_coordinator_are_told_in_terms_of_the_partition(error: ErrorCode, expected: ErrorCode) -> None:
    assert told(error) is expected
    hosted = Hosted()
    hosted.store.stored = Answer(error)
    if error is not ErrorCode.NONE:
        share = hosted.load().share
        assert (share.phase, share.error) == (Phase.GONE, expected)
        assert share.acknowledge("m", [Acknowledgement(0, 4, ACCEPT)]) is expected


def test_changes_are_persisted_in_order_with_both_epochs() -> None:
    hosted = Hosted().load()
    hosted.acquire(10)
    first = hosted.share.acknowledge("m", [Acknowledgement(5, 9, ACCEPT)])
    second = hosted.share.acknowledge("m", [Acknowledgement(0, 4, ACCEPT)])
    assert isinstance(first, Persisting) and isinstance(second, Persisting) and not first.done
    hosted.clock.run()
    assert first.done and second.done and first.error is ErrorCode.NONE
    assert [(each.batches[0].first, each.start_offset, each.complete_count) for each in hosted.store.written] == [
        (5, 0, 5),
        (0, 0, 10),
    ]
    assert {(each.state_epoch, each.leader_epoch) for each in hosted.store.written} == {(3, hosted.partition.leader_epoch)}
    assert hosted.share.machine.start_offset == 10


def test_what_was_not_persisted_is_undone() -> None:
    hosted = Hosted().load()
    hosted.acquire()
    hosted.store.error = ErrorCode.NOT_COORDINATOR
    change = hosted.share.acknowledge("m", [Acknowledgement(0, 4, ACCEPT)])
    hosted.clock.run()
    assert isinstance(change, Persisting) and change.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert hosted.share.machine.spans() == [(0, 4, RecordState.ACQUIRED, 1, "m")]


def test_a_fenced_leader_gives_up() -> None:
    hosted = Hosted().load()
    hosted.acquire()
    hosted.store.error = ErrorCode.FENCED_STATE_EPOCH
    first = hosted.share.acknowledge("m", [Acknowledgement(0, 2, ACCEPT)])
    second = hosted.share.acknowledge("m", [Acknowledgement(3, 4, ACCEPT)])
    hosted.clock.run()
    assert hosted.share.phase is Phase.GONE
    for change in (first, second):
        assert isinstance(change, Persisting) and change.done and change.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_locks_time_out_and_sessions_end() -> None:
    hosted = Hosted().load()
    hosted.acquire()
    hosted.clock.now += 100
    hosted.share.expire()
    hosted.clock.run()
    assert hosted.store.written[-1].batches == (StateBatch(0, 4, RecordState.AVAILABLE, 1),)
    hosted.acquire()
    assert hosted.share.release("m") is not None
    assert hosted.share.release("other") is None
    hosted.clock.run()


def test_it_is_current_while_the_leadership_lasts() -> None:
    hosted = Hosted().load()
    assert hosted.share.is_current
    hosted.partition.mark_deleted()
    assert not hosted.share.is_current


class Graves:
    """Takes dead letters, and holds them until the test says so."""

    def __init__(self, hosted: Hosted) -> None:
        self.letters: list[DeadLetter] = []
        self.error: Exception | None = None
        hosted.share.bury = self.bury

    async def bury(self, letter: DeadLetter) -> None:
        self.letters.append(letter)
        if self.error is not None:
            raise self.error


REJECT = (3,)
LETTER = DeadLetter(0, 4, 1, Cause.REJECTED)


def with_queue() -> tuple[Hosted, Graves]:
    hosted = Hosted()
    hosted.settings.limits = lambda group_id: ShareLimits(dead_letters=True)
    return hosted, Graves(hosted)


@pytest.mark.parametrize("error", [None, ValueError("cannot be")])
def test_a_dead_letter_is_written_when_the_change_is_durable_and_then_the_record_is_finished(error: Exception | None) -> None:
    hosted, graves = with_queue()
    graves.error = error
    hosted.load().acquire()
    hosted.share.acknowledge("m", [Acknowledgement(0, 4, REJECT)])
    assert not graves.letters
    hosted.clock.run()
    assert graves.letters == [LETTER] and hosted.share.is_idle
    assert [each.batches[0].state for each in hosted.store.written] == [RecordState.ARCHIVING, RecordState.ARCHIVED]
    assert hosted.share.machine.start_offset == 5


def test_a_change_that_was_not_persisted_has_no_dead_letter() -> None:
    hosted, graves = with_queue()
    hosted.load().acquire()
    hosted.store.error = ErrorCode.NOT_COORDINATOR
    hosted.share.acknowledge("m", [Acknowledgement(0, 4, REJECT)])
    hosted.clock.run()
    assert not graves.letters


def test_a_new_leader_writes_the_dead_letters_that_the_one_before_did_not_finish() -> None:
    hosted = Hosted()  # the group has no dead-letter queue any more
    graves = Graves(hosted)
    hosted.store.stored = Answer(stored=Found(3, 0, 0, 0, (StateBatch(0, 4, RecordState.ARCHIVING, 1),)))
    hosted.load()
    assert graves.letters == [LETTER]
    assert hosted.store.written[-1].batches == (StateBatch(0, 4, RecordState.ARCHIVED, 1),)
    assert hosted.share.machine.start_offset == 5


@pytest.mark.parametrize("error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION, ErrorCode.BROKER_NOT_AVAILABLE])
def test_a_coordinator_that_is_out_of_reach_costs_neither_locks_nor_counts(error: ErrorCode) -> None:
    hosted = Hosted().load()
    hosted.acquire()
    hosted.store.error = error
    change = hosted.share.acknowledge("m", [Acknowledgement(0, 4, ACCEPT)])
    hosted.clock.run()
    assert isinstance(change, Persisting) and change.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert hosted.share.machine.spans() == [(0, 4, RecordState.ACQUIRED, 1, "m")]


def test_a_state_that_was_deleted_ends_it() -> None:
    hosted = Hosted().load()
    hosted.acquire()
    hosted.store.error = ErrorCode.INVALID_REQUEST
    hosted.share.acknowledge("m", [Acknowledgement(0, 4, ACCEPT)])
    hosted.clock.run()
    assert (hosted.share.phase, hosted.share.error) == (Phase.GONE, ErrorCode.UNKNOWN_SERVER_ERROR)


def test_a_load_that_breaks_off_is_an_error_and_no_wait_without_end() -> None:
    hosted = Hosted()
    hosted.store.broken = True
    hosted.clock.spawn(hosted.share.load(), "load")
    with pytest.raises(OSError, match="broken"):
        hosted.clock.run()
    assert (hosted.share.phase, hosted.share.error) == (Phase.GONE, ErrorCode.UNKNOWN_SERVER_ERROR)


def test_a_write_that_breaks_off_is_an_error_and_no_wait_without_end() -> None:
    hosted = Hosted().load()
    hosted.acquire(10)
    hosted.store.broken = True
    first = hosted.share.acknowledge("m", [Acknowledgement(0, 4, ACCEPT)])
    second = hosted.share.acknowledge("m", [Acknowledgement(5, 9, ACCEPT)])
    with pytest.raises(OSError, match="broken"):
        hosted.clock.run()
    for change in (first, second):
        assert isinstance(change, Persisting) and change.done and change.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert hosted.share.phase is Phase.GONE


def test_locks_that_come_back_are_told() -> None:
    hosted = Hosted().load()
    locked: list[int] = []
    hosted.share.on_locked = lambda: locked.append(1)
    hosted.acquire()
    hosted.store.error = ErrorCode.NOT_COORDINATOR
    hosted.share.acknowledge("m", [Acknowledgement(0, 4, ACCEPT)])
    assert not locked
    hosted.clock.run()
    assert locked


def test_only_fetches_that_were_turned_away_are_woken_when_one_ends() -> None:
    hosted = Hosted().load()
    woken: list[str] = []

    class Fetch:
        def finish(self) -> None:
            woken.append("turned away")

        def changed(self, *_: object) -> None:
            woken.append("waits")

    waits = Fetch()
    assert hosted.share.begin_read(waits)
    hosted.share.watchers[Fetch()] = None
    assert not hosted.share.begin_read(waits)
    hosted.share.end_read()
    assert woken == ["turned away"]
    assert hosted.share.begin_read(waits)
