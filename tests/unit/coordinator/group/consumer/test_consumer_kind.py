from tests.unit.coordinator.group.consumer_driver import ConsumerDriver, settled_pair
from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.model.errors import ErrorCode


def pair() -> ConsumerDriver:
    driver = ConsumerDriver()
    settled_pair(driver)
    return driver


def test_an_empty_group_becomes_a_classic_one_with_its_first_classic_member() -> None:
    driver = pair()
    for member in list(driver.machine.groups["g"].members):
        driver.run(driver.machine.end_session("g", member, driver.now))
    assert isinstance(driver.machine.groups["g"], ConsumerGroup)
    driver.join("g")
    assert isinstance(driver.machine.groups["g"], ClassicGroup)
    driver.restart()
    assert isinstance(driver.machine.groups["g"], ClassicGroup), "its records say so"


def test_offsets_are_read_by_members_in_their_epoch() -> None:
    offsets = pair().machine.offsets
    assert offsets.fetch_error("g", "a", 3) is None
    assert offsets.fetch_error("g", "a", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert offsets.fetch_error("g", "nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert offsets.fetch_error("other", "nobody", 1) is None, "no group, nothing to be fenced from"
