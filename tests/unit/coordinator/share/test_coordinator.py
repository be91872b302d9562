"""ShareCoordinator: what it stores, what it refuses, and what of its log is not needed any more."""

from __future__ import annotations

from tests.unit.coordinator.share.driver import KEY, T1, T2, Driver, accepted
from tidelog.coordinator.share.coordinator import Answer
from tidelog.coordinator.share.records import ShareKey, ShareRecord, Snapshot, Update, decode
from tidelog.coordinator.share.settings import ShareCoordinatorSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import NOTHING


def last(driver: Driver) -> ShareRecord:
    one = driver.log[-1]
    assert one.key is not None
    found = decode(one.key, one.value)
    assert found is not None
    return found


def test_a_state_is_initialized_read_and_written() -> None:
    driver = Driver()
    assert driver.initialize(epoch=3) == Answer()
    assert last(driver) == ShareRecord(KEY, Snapshot(0, 3, 0, -1, -1, 1000, 1000))
    found = driver.read(leader_epoch=0).stored
    assert found is not None and found[:4] == (3, 0, -1, -1)
    assert len(driver.log) == 1, "a read by the leader that is known already records nothing"
    assert driver.write(accepted(0, 9), start=0, state=3, count=10) == Answer()
    assert last(driver) == ShareRecord(KEY, Update(0, 0, 0, 10, (accepted(0, 9),)))
    driver.restart()
    found = driver.read().stored
    assert found is not None and found == (3, 0, 0, 10, (accepted(0, 9),))


def test_a_new_leader_fences_the_one_before_it() -> None:
    driver = Driver()
    driver.initialize()
    driver.read(leader_epoch=4)
    assert last(driver) == ShareRecord(KEY, Update(0, 4, -1, -1))
    driver.restart()
    assert driver.write(accepted(0, 0), leader=3).error is ErrorCode.FENCED_LEADER_EPOCH
    assert driver.read(leader_epoch=3).error is ErrorCode.FENCED_LEADER_EPOCH
    assert driver.write(accepted(0, 0), leader=4) == Answer()


def test_a_reset_fences_those_who_loaded_the_state_before() -> None:
    driver = Driver()
    driver.initialize(epoch=1)
    driver.read(leader_epoch=2)
    driver.write(accepted(0, 9), leader=2)
    driver.initialize(epoch=5, start=70)
    assert driver.write(accepted(10, 19), leader=2, state=1).error is ErrorCode.FENCED_STATE_EPOCH
    assert driver.initialize(epoch=4).error is ErrorCode.FENCED_STATE_EPOCH
    assert driver.write(accepted(70, 71), leader=1, state=5).error is ErrorCode.FENCED_LEADER_EPOCH
    assert driver.read(leader_epoch=2).stored == (5, 2, 70, 0, ())
    assert last(driver).change == Snapshot(1, 5, 0, 70, 0, 1000, 1000), "at a known start no record is finished"
    driver.initialize(epoch=6, start=-1)
    assert last(driver).change == Snapshot(2, 6, 0, -1, -1, 1000, 1000), "the first leader decides, and counts"


def test_what_is_not_initialized_is_neither_read_nor_written() -> None:
    driver = Driver()
    assert driver.read().error is ErrorCode.INVALID_REQUEST
    assert driver.write(accepted(0, 9)).error is ErrorCode.INVALID_REQUEST
    assert driver.summary() == Answer()
    assert driver.delete() == Answer()
    assert not driver.log


def test_impossible_and_unknown_partitions_are_refused() -> None:
    driver = Driver()
    assert driver.initialize(key=ShareKey("g", T1, -1)).error is ErrorCode.INVALID_REQUEST
    assert driver.initialize(key=ShareKey("g", b"\0" * 16, 0)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert driver.summary(ShareKey("g", b"\0" * 16, 0)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert driver.read(key=ShareKey("g", b"\0" * 16, 0)).error is ErrorCode.INVALID_REQUEST
    assert driver.initialize(key=ShareKey("g", T1, 2)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    driver.initialize()
    del driver.topics[T1]
    assert driver.write(accepted(0, 9)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_updates_are_folded_into_a_snapshot() -> None:
    driver = Driver(ShareCoordinatorSettings(updates_per_snapshot=2))
    driver.initialize()
    for first in (0, 10, 20):
        driver.now += 5
        driver.write(accepted(first, first + 9), start=0, count=first)
    assert last(driver).change == Snapshot(1, 1, 0, 0, 20, 1015, 1015, (accepted(0, 29),))
    assert driver.machine.prunable_offset(safe_to=4) == 3
    assert driver.machine.prunable_offset(safe_to=3) is None, "the snapshot may still be lost"
    driver.log[:3] = []
    driver.restart()
    assert driver.read().stored == (1, 0, 0, 20, (accepted(0, 29),))


def test_a_state_is_deleted() -> None:
    driver = Driver()
    driver.initialize()
    driver.delete()
    driver.restart()
    assert driver.read().error is ErrorCode.INVALID_REQUEST
    assert driver.machine.prunable_offset(safe_to=99) is None


def test_states_of_deleted_topics_are_forgotten() -> None:
    driver = Driver()
    driver.initialize()
    driver.initialize(key=KEY._replace(topic_id=T2))
    driver.run(driver.machine.forget_topics({T2}))
    assert last(driver) == ShareRecord(KEY._replace(topic_id=T2), None)
    del driver.topics[T1]
    driver.run(driver.machine.expire(driver.machine.next_deadline()))
    assert last(driver) == ShareRecord(KEY, None)


def test_a_cold_state_gets_a_new_snapshot_beside_a_warm_one() -> None:
    driver = Driver(ShareCoordinatorSettings(cold_after_ms=100))
    driver.initialize()
    driver.write(accepted(0, 9))
    driver.now += 60
    warm = KEY._replace(topic_id=T2)
    driver.initialize(key=warm)
    driver.now += 40
    driver.run(driver.machine.expire(driver.now))
    assert last(driver) == ShareRecord(KEY, Snapshot(1, 1, 0, 0, 0, 1000, 1100, (accepted(0, 9),)))
    assert driver.machine.next_deadline() == driver.now + 100
    driver.now += 200
    assert driver.machine.expire(driver.now) == NOTHING, "all are cold, and none has anything new"


def test_a_summary_has_the_offsets() -> None:
    driver = Driver()
    driver.initialize()
    driver.write(accepted(5, 9), start=3, count=5)
    assert driver.summary().stored == (1, 0, 3, 5, ())


def test_a_late_write_takes_nothing_back() -> None:
    driver = Driver()
    driver.initialize()
    driver.write(accepted(50, 59), start=0, count=10)
    driver.write(start=100, count=3)
    driver.write(accepted(50, 59), start=0, count=10)
    driver.restart()
    assert driver.read().stored == (1, 0, 100, 3, ())
    driver.write(start=100, count=1)
    assert driver.summary().stored == (1, 0, 100, 3, ()), "records do not become unfinished"
    driver.write(start=104, count=0)
    assert driver.summary().stored == (1, 0, 104, 0, ())


def test_a_late_write_takes_nothing_back_in_a_snapshot_either() -> None:
    driver = Driver(ShareCoordinatorSettings(updates_per_snapshot=1))
    driver.initialize()
    driver.write(start=100, count=3)
    driver.write(accepted(50, 59), start=0, count=10)
    assert last(driver).change == Snapshot(1, 1, 0, 100, 3, 1000, 1000)


def test_a_state_is_not_reset_by_the_same_order_again() -> None:
    driver = Driver()
    driver.initialize(epoch=3)
    driver.write(accepted(5, 9), state=3, start=2, count=5)
    assert driver.initialize(epoch=3) == Answer()
    assert driver.summary().stored == (3, 0, 2, 5, ())
    driver.initialize(epoch=4)
    assert driver.summary().stored == (4, 0, -1, -1, ())
