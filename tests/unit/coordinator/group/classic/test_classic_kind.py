from tests.unit.coordinator.group.driver import Driver, stable_group
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.records import group_record, group_tombstone


def test_a_live_group_is_ahead_of_its_records_and_a_tombstone_takes_only_an_empty_one() -> None:
    driver = Driver()
    ids = stable_group(driver)
    driver.machine.replay(group_record(ClassicGroup("g", 0)), driver.now)
    assert list(driver.machine.groups["g"].members) == ids
    driver.machine.replay(group_tombstone("g"), driver.now)
    assert "g" in driver.machine.groups, "its members are there"
    driver.leave("g", *[(member, None) for member in ids])
    group = driver.machine.classic_group("g")
    assert group is not None and group.state is GroupState.EMPTY
    driver.machine.replay(group_tombstone("g"), driver.now)
    assert "g" not in driver.machine.groups and group.state is GroupState.DEAD


def test_at_load_the_last_record_counts() -> None:
    driver = Driver()
    stable_group(driver)
    driver.log.append(group_tombstone("g"))
    driver.restart()
    assert "g" not in driver.machine.groups
