"""Ranges as Apache Kafka 4.3.1 gives them (its RangeAssignorTest has most of these cases)."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer.assignors.groups import group, member, shown
from tidelog.coordinator.group.consumer.assignors.range_assignor import assign_range
from tidelog.coordinator.group.consumer.assignors.spec import PartitionAssignorError


def test_who_subscribes_to_nothing_gets_nothing() -> None:
    assert assign_range(group({"1": 3}, A=member(""))) == {"A": {}}
    assert assign_range(group({"1": 3})) == {}


def test_a_topic_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PartitionAssignorError):
        assign_range(group({"1": 3}, A=member("2")))


def test_the_first_members_get_one_more_of_each_topic() -> None:
    assert shown(assign_range(group({"1": 3, "3": 2}, A=member("13"), B=member("13")))) == {
        "A": {"1": [0, 1], "3": [0]},
        "B": {"1": [2], "3": [1]},
    }


def test_only_the_subscribers_of_a_topic_share_it() -> None:
    assert shown(assign_range(group({"1": 3, "2": 3, "3": 2}, A=member("12"), B=member("3"), C=member("23")))) == {
        "A": {"1": [0, 1, 2], "2": [0, 1]},
        "B": {"3": [0]},
        "C": {"2": [2], "3": [1]},
    }


def test_with_more_members_than_partitions_the_last_ones_get_none() -> None:
    assert shown(assign_range(group({"1": 3, "3": 2}, A=member("13"), B=member("13"), C=member("13")))) == {
        "A": {"1": [0], "3": [0]},
        "B": {"1": [1], "3": [1]},
        "C": {"1": [2]},
    }


def test_topics_with_equally_many_partitions_are_partitioned_alike() -> None:
    result = shown(assign_range(group({"1": 7, "2": 7}, A=member("12"), B=member("12"), C=member("12"))))
    assert all(mine["1"] == mine["2"] for mine in result.values())


def test_what_is_owned_does_not_matter() -> None:
    owners = {"A": member("12", {"1": [0, 1], "2": [0, 1]}), "B": member("12", {"1": [2], "2": [2]}), "C": member("12")}
    assert shown(assign_range(group({"1": 3, "2": 3}, **owners))) == {
        "A": {"1": [0], "2": [0]},
        "B": {"1": [1], "2": [1]},
        "C": {"1": [2], "2": [2]},
    }


def test_static_members_come_first_by_their_instance_ids() -> None:
    members = {"Z": member("1", instance="i1"), "Y": member("1", instance="i2"), "A": member("1")}
    assert shown(assign_range(group({"1": 5}, **members))) == {"A": {"1": [4]}, "Y": {"1": [2, 3]}, "Z": {"1": [0, 1]}}


def test_a_static_member_that_comes_back_under_another_id_gets_the_same() -> None:
    before = assign_range(group({"1": 5}, A=member("1", instance="a"), B=member("1"), C=member("1", instance="c")))
    after = assign_range(group({"1": 5}, A1=member("1", instance="a"), B=member("1"), C=member("1", instance="c")))
    assert (after["A1"], after["B"], after["C"]) == (before["A"], before["B"], before["C"])
