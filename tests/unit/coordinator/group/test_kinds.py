from tests.unit.coordinator.group.driver import Driver, stable_group
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.records import GroupRecord


def test_a_group_goes_by_the_rules_of_its_class() -> None:
    driver = Driver()
    stable_group(driver)
    assert driver.machine.kind_of(driver.machine.groups["g"]).name == "classic"
    assert driver.machine.kind_of(ConsumerGroup("n")).name == "consumer"


def test_a_record_that_no_protocol_knows_is_passed_over() -> None:
    driver = Driver()
    stable_group(driver)
    driver.machine.replay(GroupRecord(b"\x00\x63\x00\x00", b"\x00\x00"), driver.now)
    assert list(driver.machine.groups) == ["g"]
