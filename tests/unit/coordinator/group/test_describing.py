"""What administrators see."""

from __future__ import annotations

from tests.unit.coordinator.group.consumer_driver import ConsumerDriver
from tests.unit.coordinator.group.driver import Driver, stable_group
from tidelog.coordinator.group.describing import describe, list_groups
from tidelog.model.errors import ErrorCode as E


def test_a_stable_group_shows_protocol_metadata_and_assignments() -> None:
    driver = Driver()
    ids = stable_group(driver)
    group = describe(driver.machine, "g", 6)
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    assert [(m.member_id, m.member_metadata, m.member_assignment) for m in group.members] == [(i, b"r", i.encode()) for i in ids]


def test_a_rebalancing_group_shows_members_and_their_last_assignments_but_nothing_that_is_not_agreed() -> None:
    driver = Driver()
    ids = stable_group(driver)
    driver.join_twice("g")
    group = describe(driver.machine, "g", 6)
    assert (group.group_state, group.protocol_data, len(group.members)) == ("PreparingRebalance", "", 3)
    assert [(m.member_metadata, m.member_assignment) for m in group.members] == [*((b"", i.encode()) for i in ids), (b"", b"")]


def test_an_unknown_group_is_dead_and_since_v6_an_error() -> None:
    driver = Driver()
    assert (describe(driver.machine, "x", 5).group_state, describe(driver.machine, "x", 5).error_code) == ("Dead", E.NONE)
    assert describe(driver.machine, "x", 6).error_code == E.GROUP_ID_NOT_FOUND


def test_a_group_that_only_stored_offsets_is_an_empty_one() -> None:
    driver = Driver()
    driver.commit("stored", {("t", 0): 1})
    group = describe(driver.machine, "stored", 6)
    assert (group.error_code, group.group_state, group.protocol_type, group.members) == (0, "Empty", "", [])


def test_lists_are_filtered_by_state_and_type_without_regard_to_case() -> None:
    driver = Driver()
    stable_group(driver)
    driver.commit("stored", {("t", 0): 1})
    assert [(g.group_id, g.group_state) for g in list_groups(driver.machine, [], [])] == [("g", "Stable"), ("stored", "Empty")]
    assert [g.group_id for g in list_groups(driver.machine, ["stable"], ["Classic"])] == ["g"]
    assert list_groups(driver.machine, [], ["consumer"]) == []


def test_groups_of_the_consumer_protocol_are_listed_as_such_and_are_no_classic_ones() -> None:
    driver = ConsumerDriver()
    driver.enter("new", "a")
    (listed,) = list_groups(driver.machine, [], ["Consumer"])
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "new",
        "consumer",
        "Stable",
        "consumer",
    )
    assert list_groups(driver.machine, [], ["classic"]) == [] == list_groups(driver.machine, ["empty"], [])
    answer = describe(driver.machine, "new", 6)
    assert (answer.error_code, answer.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        "Group new uses the consumer protocol: ask with ConsumerGroupDescribe.",
    )
    assert (describe(driver.machine, "new", 5).error_code, describe(driver.machine, "new", 5).group_state) == (0, "Dead")
