"""ShareGroupHeartbeat: joining, initialization of partitions, assignment, leaving, and what is refused."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer_driver import topic_id
from tests.unit.coordinator.group.share.share_driver import ANN, BOB, ShareDriver, parts
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.share.share_heartbeat import check_request
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def test_partitions_are_assigned_once_their_state_is_initialized() -> None:
    driver = ShareDriver()
    first = driver.join(ANN)
    assert (first.error_code, first.member_epoch, driver.told(first)) == (0, 2, {})
    (order,) = driver.orders
    assert order == ("g", 2, {topic_id("t"): ("t", frozenset({0, 1, 2}))})
    driver.settle()
    assert driver.share_beat(ANN, 2).member_epoch == 2, "the assignment interval has not passed"
    driver.now += 1_000
    second = driver.share_beat(ANN, 2)
    assert (second.member_epoch, driver.told(second)) == (3, {"t": [0, 1, 2]})
    third = driver.share_beat(ANN, 3)
    assert (third.member_epoch, driver.told(third)) == (3, None)
    driver.restart()
    assert driver.shared().members[ANN].assigned == parts(t=[0, 1, 2])


def test_the_records_of_a_member_that_joins_alone() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    assert [int.from_bytes(record.key[:2], "big") for record in driver.log] == [10, 11, 13, 12, 14, 15]


def test_a_failed_initialization_is_ordered_again_at_once_and_a_silent_one_after_a_while() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    driver.settle(done=False)
    driver.share_beat(ANN, 2)
    assert len(driver.orders) == 1
    driver.share_beat(ANN, 2)
    assert len(driver.orders) == 1
    driver.now += GroupSettings().share_initialize_retry_interval_ms
    driver.share_beat(ANN, 2)
    assert len(driver.orders) == 2


def test_new_partitions_of_a_topic_are_initialized_too() -> None:
    driver = ready()
    driver.set_topics({"t": 5})
    driver.share_beat(ANN, driver.shared().members[ANN].epoch)
    assert driver.orders.pop().topics == {topic_id("t"): ("t", frozenset({3, 4}))}


def ready() -> ShareDriver:
    """``ann`` has all partitions."""
    driver = ShareDriver()
    driver.join(ANN)
    driver.settle()
    driver.now += 1_000
    driver.share_beat(ANN, 2)
    driver.now += 1_000
    return driver


def test_members_share_and_take_over() -> None:
    driver = ready()
    assert driver.told(driver.join(BOB)) == {"t": [2]}
    assert driver.told(driver.share_beat(ANN, 3)) == {"t": [0, 1]}
    assert driver.share_beat(ANN, -1).member_epoch == -1
    driver.now += 1_000
    assert driver.told(driver.share_beat(BOB, 4)) == {"t": [0, 1, 2]}


def test_a_session_ends_without_heartbeats() -> None:
    driver = ready()
    driver.now += 44_000
    driver.share_beat(ANN, 3)
    driver.advance(44_999)
    assert ANN in driver.shared().members
    driver.advance(1)
    assert not driver.shared().members and driver.shared().epoch == 4
    driver.restart()
    assert driver.shared().state.value == "Empty"


def test_after_a_restart_members_have_a_full_session() -> None:
    driver = ready()
    driver.now += 40_000
    driver.restart()
    driver.advance(44_999)
    assert ANN in driver.shared().members
    driver.advance(1)
    assert not driver.shared().members


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        (BOB, 1, ErrorCode.UNKNOWN_MEMBER_ID),
        (BOB, -1, ErrorCode.UNKNOWN_MEMBER_ID),
        (ANN, 9, ErrorCode.FENCED_MEMBER_EPOCH),
        (ANN, 2, ErrorCode.NONE),
        (ANN, 0, ErrorCode.NONE),
    ],
)
def test_epochs_are_checked(member: str, epoch: int, error: ErrorCode) -> None:
    driver = ready()
    position = len(driver.log)
    topics = ["t"] if epoch == 0 else None
    assert driver.share_beat(member, epoch, topics).error_code == error
    assert error is ErrorCode.NONE or len(driver.log) == position


def test_a_group_that_is_full_or_of_another_kind_takes_no_member() -> None:
    driver = ShareDriver(GroupSettings(share_max_size=1))
    driver.join(ANN)
    assert driver.join(BOB).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.join(ANN).error_code == 0
    driver.enter("consumers", "x")
    assert driver.join(ANN, group="consumers").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.enter("g", "x").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.share_beat(ANN, 1, group="none").error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    "fields",
    [
        {"member_id": ""},
        {"group_id": " "},
        {"rack_id": ""},
        {"member_epoch": 0, "subscribed_topic_names": None},
        {"member_epoch": -2},
    ],
)
def test_an_inconsistent_request_is_refused(fields: dict[str, object]) -> None:
    good = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
    check_request(ShareGroupHeartbeatRequest(**good))  # type: ignore[arg-type]
    with pytest.raises(KafkaError) as refused:
        check_request(ShareGroupHeartbeatRequest(**{**good, **fields}))  # type: ignore[arg-type]
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_a_target_from_a_clock_that_was_ahead_holds_up_no_new_one() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    driver.settle()
    driver.shared().assignment_ms = driver.now + 3_600_000
    assert driver.told(driver.share_beat(ANN, 2)) == {"t": [0, 1, 2]}


def test_a_subscription_that_fits_into_no_record_is_refused_and_changes_nothing() -> None:
    driver = ShareDriver(GroupSettings(max_record_bytes=1_000))
    many = [f"topic-{number:04}" for number in range(200)]
    assert driver.share_beat(ANN, 0, many).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (driver.log, driver.orders, dict(driver.machine.groups)) == ([], [], {})
    driver.join(ANN)
    driver.settle()
    driver.now += 1_000
    epoch = driver.share_beat(ANN, 2).member_epoch
    driver.set_topics({"t": 5})
    assert driver.share_beat(ANN, epoch, many).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert driver.orders == [] and driver.shared().members[ANN].topics == ("t",)
    written = len(driver.log)
    driver.share_beat(ANN, epoch)
    assert driver.orders.pop().topics == {topic_id("t"): ("t", frozenset({3, 4}))}
    assert len(driver.log) > written
    assert driver.shared().epoch == epoch + 1, "the refused heartbeat has not hidden that the topic grew"
