"""Records of a group with a dead-letter queue: ARCHIVING until their dead letters are written."""

from __future__ import annotations

from tests.unit.replication.share.test_share_partition import ACKNOWLEDGED, ANN, ARCHIVED, ARCHIVING, AVAILABLE, Shared
from tidelog.replication.share.dead_letters import Cause, DeadLetter, unfinished
from tidelog.replication.share.record_state import AckType, StateBatch
from tidelog.replication.share.share_partition import ShareLimits

LIMITS = ShareLimits(delivery_count=2, dead_letters=True)
ACCEPT, RELEASE, REJECT, GAP = AckType.ACCEPT, AckType.RELEASE, AckType.REJECT, AckType.GAP


def shared(*batches: StateBatch) -> Shared:
    return Shared(limits=LIMITS, batches=batches)


def test_a_rejected_record_holds_the_start_until_it_is_written() -> None:
    world = shared()
    world.fetch(most=10)
    change = world.acked(0, 9, REJECT, REJECT, GAP, *[ACCEPT] * 7)
    assert change.batches == (StateBatch(0, 1, ARCHIVING, 1), StateBatch(2, 2, ARCHIVED, 1), StateBatch(3, 9, ACKNOWLEDGED, 1))
    assert change.dead_letters == (DeadLetter(0, 1, 1, Cause.REJECTED),)
    machine = world.machine
    assert (machine.start_offset, machine.in_flight, machine.delivery_complete_count) == (0, 10, 8)
    done = machine.archive(change.dead_letters[0])
    assert done is not None and (done.batches, done.delivery_complete_count) == ((StateBatch(0, 1, ARCHIVED, 1),), 10)
    assert (machine.start_offset, machine.in_flight) == (10, 0)
    assert machine.archive(change.dead_letters[0]) is None
    machine.check()


def test_it_is_not_delivered_meanwhile() -> None:
    world = shared()
    world.fetch(most=10)
    world.acked(0, 4, REJECT)
    assert world.fetch(most=10) == [(10, 19, 1)]


def test_the_last_delivery_makes_a_dead_letter_however_it_ends() -> None:
    letter = DeadLetter(0, 9, 2, Cause.EXHAUSTED)
    for end in ("release", "session", "lock"):
        world = shared()
        world.fetch(most=10)
        world.acked(0, 9, RELEASE)
        world.fetch(most=10)
        if end == "release":
            change = world.acked(0, 9, RELEASE)
        elif end == "session":
            released = world.machine.release(ANN)
            assert released is not None
            change = released
        else:
            world.now_ms += LIMITS.lock_ms
            expired = world.machine.expire(world.now_ms)
            assert expired is not None and expired.mark is None
            change = expired
        assert (change.batches, change.dead_letters) == ((StateBatch(0, 9, ARCHIVING, 2),), (letter,)), end
        world.done(change)
        assert world.machine.archive(letter) is not None


def test_causes_are_kept_apart() -> None:
    world = shared(StateBatch(0, 9, AVAILABLE, 1))
    world.fetch(most=10)
    change = world.acked(0, 9, *[REJECT] * 5, *[RELEASE] * 5)
    assert change.batches == (StateBatch(0, 9, ARCHIVING, 2),)
    assert change.dead_letters == (DeadLetter(0, 4, 2, Cause.REJECTED), DeadLetter(5, 9, 2, Cause.EXHAUSTED))


def test_what_was_not_persisted_is_no_dead_letter_unless_the_lock_timed_out_on_the_last_delivery() -> None:
    world = shared(StateBatch(0, 9, AVAILABLE, 1))
    world.fetch(most=10)
    change = world.ack(0, 9, REJECT)
    assert world.machine.complete(change, world.now_ms, persisted=False) is None
    change = world.ack(0, 9, REJECT)
    late = world.machine.complete(change, world.now_ms + LIMITS.lock_ms, persisted=False)
    assert late is not None and late.mark is None
    assert (late.batches, late.dead_letters) == ((StateBatch(0, 9, ARCHIVING, 2),), (DeadLetter(0, 9, 2, Cause.EXHAUSTED),))
    world.machine.check()


def test_a_new_leader_takes_them_up_and_guesses_the_cause() -> None:
    world = shared(StateBatch(0, 4, ARCHIVING, 1), StateBatch(5, 9, ARCHIVING, 2), StateBatch(10, 19, ACKNOWLEDGED, 1))
    letters = unfinished(world.machine.spans(), 2)
    assert letters == (DeadLetter(0, 4, 1, Cause.REJECTED), DeadLetter(5, 9, 2, Cause.EXHAUSTED))
    assert world.machine.delivery_complete_count == 10
    assert world.fetch(most=10) == [(20, 29, 1)]
    for letter in letters:
        assert world.machine.archive(letter) is not None
    assert world.machine.start_offset == 20


def test_the_log_start_passes_them() -> None:
    world = shared()
    world.fetch(most=10)
    change = world.acked(0, 9, REJECT)
    world.machine.move_start(5)
    done = world.machine.archive(change.dead_letters[0])
    assert done is not None and done.batches == (StateBatch(5, 9, ARCHIVED, 1),)
    assert world.machine.start_offset == 10
    world.machine.check()


def test_without_a_queue_nothing_changes() -> None:
    world = Shared(limits=ShareLimits(delivery_count=2))
    world.fetch(most=10)
    change = world.acked(0, 9, REJECT)
    assert (change.batches, change.dead_letters) == ((StateBatch(0, 9, ARCHIVED, 1),), ())
