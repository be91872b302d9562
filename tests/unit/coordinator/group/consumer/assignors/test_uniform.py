"""Equal shares as in Apache Kafka 4.3.1: most cases are in UniformHomogeneousAssignmentBuilderTest."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer.assignors.groups import group, member, shown, topic_id
from tidelog.coordinator.group.consumer.assignors.spec import PartitionAssignorError
from tidelog.coordinator.group.consumer.assignors.uniform import assign_uniform


def test_without_members_or_topics_nobody_gets_anything() -> None:
    assert assign_uniform(group({"1": 3})) == {}
    assert assign_uniform(group({"1": 3}, A=member(""))) == {"A": {}}


def test_a_topic_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PartitionAssignorError):
        assign_uniform(group({"1": 3}, A=member("2")))


def test_partitions_are_dealt_out_in_blocks_and_not_topic_by_topic() -> None:
    assert shown(assign_uniform(group({"1": 3, "3": 2}, A=member("13"), B=member("13")))) == {
        "A": {"1": [0, 1]},
        "B": {"1": [2], "3": [0, 1]},
    }


def test_of_more_members_than_partitions_as_many_go_empty_as_have_to() -> None:
    result = assign_uniform(group({"3": 2}, A=member("3"), B=member("3"), C=member("3")))
    assert sorted(sum(map(len, mine.values())) for mine in result.values()) == [0, 1, 1]


def test_who_has_too_much_gives_its_last_partitions() -> None:
    owners = {"A": member("12", {"1": [0, 1], "2": [0, 1]}), "B": member("12", {"1": [2], "2": [2]})}
    assert shown(assign_uniform(group({"1": 3, "2": 3}, **owners))) == {
        "A": {"1": [0, 1], "2": [0]},
        "B": {"1": [2], "2": [1, 2]},
    }


def test_partitions_that_were_added_go_to_who_has_room() -> None:
    owners = {"A": member("12", {"1": [0, 2], "2": [0]}), "B": member("12", {"1": [1], "2": [1, 2]})}
    result = assign_uniform(group({"1": 6, "2": 5}, **owners))
    assert {number: sum(map(len, result[key].values())) for number, key in ((1, "A"), (2, "B"))} == {1: 5, 2: 6}
    for key, spec in owners.items():
        assert all(result[key][topic] >= partitions for topic, partitions in spec.owned.items())


def test_a_member_that_joins_gets_only_what_balance_asks_for() -> None:
    owners = {"A": member("12", {"1": [0, 2], "2": [0]}), "B": member("12", {"1": [1], "2": [1, 2]}), "C": member("12")}
    assert shown(assign_uniform(group({"1": 3, "2": 3}, **owners))) == {
        "A": {"1": [0, 2]},
        "B": {"1": [1], "2": [1]},
        "C": {"2": [0, 2]},
    }


def test_what_a_member_leaves_behind_is_shared_and_nothing_else_moves() -> None:
    owners = {"A": member("12", {"1": [0], "2": [0]}), "B": member("12", {"1": [1], "2": [1]})}
    result = assign_uniform(group({"1": 3, "2": 3}, **owners))
    assert all(result[key][topic] >= partitions for key, spec in owners.items() for topic, partitions in spec.owned.items())
    assert [sum(map(len, mine.values())) for mine in result.values()] == [3, 3]


def test_a_topic_nobody_wants_any_more_is_given_up() -> None:
    owners = {"A": member("2", {"1": [0], "2": [0]}), "B": member("2", {"1": [1], "2": [1]})}
    assert shown(assign_uniform(group({"1": 2, "2": 2}, **owners))) == {"A": {"2": [0]}, "B": {"2": [1]}}


def test_who_holds_one_more_keeps_it_whatever_its_place_in_the_order() -> None:
    """Before Kafka 4.3 the first members were given the larger shares, and a partition moved for nothing."""
    owners = {"A": member("1", {"1": [0]}), "B": member("1", {"1": [1]}), "C": member("1", {"1": [2, 3]})}
    assert shown(assign_uniform(group({"1": 4}, **owners))) == {"A": {"1": [0]}, "B": {"1": [1]}, "C": {"1": [2, 3]}}


def test_of_two_owners_the_first_one_counts_and_what_does_not_exist_is_nobodys() -> None:
    owners = {"A": member("1", {"1": [0, 1, 9]}), "B": member("1", {"1": [1, -1]})}
    result = assign_uniform(group({"1": 3}, **owners))
    assert result["A"] == {topic_id("1"): frozenset({0, 1})} and result["B"] == {topic_id("1"): frozenset({2})}
