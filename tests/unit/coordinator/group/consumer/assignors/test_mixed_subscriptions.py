"""Members that want different topics, as in Apache Kafka 4.3.1: most cases are in UniformHeterogeneousAssignmentBuilderTest."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer.assignors.groups import group, member, shown
from tidelog.coordinator.group.consumer.assignors.mixed_subscriptions import assign_mixed_subscriptions
from tidelog.coordinator.group.consumer.assignors.spec import PartitionAssignorError


def test_a_topic_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PartitionAssignorError):
        assign_mixed_subscriptions(group({"1": 3}, A=member("3"), B=member("2")))


def test_who_subscribes_to_nothing_gets_nothing() -> None:
    assert shown(assign_mixed_subscriptions(group({"1": 3}, A=member("1"), B=member("")))) == {"A": {"1": [0, 1, 2]}, "B": {}}


def test_the_topic_with_least_choice_goes_first_and_the_others_even_out() -> None:
    assert shown(assign_mixed_subscriptions(group({"1": 3, "3": 6}, A=member("13"), B=member("3")))) == {
        "A": {"1": [0, 1, 2], "3": [4]},
        "B": {"3": [0, 1, 2, 3, 5]},
    }


def test_of_more_subscribers_than_partitions_some_get_none() -> None:
    assert shown(assign_mixed_subscriptions(group({"1": 2, "3": 1}, A=member("3"), B=member("3"), C=member("1")))) == {
        "A": {"3": [0]},
        "B": {},
        "C": {"1": [0, 1]},
    }


def test_an_unbalanced_group_is_evened_out_with_as_few_moves_as_possible() -> None:
    owners = {
        "A": member("1", {"1": [0, 1, 2]}),
        "B": member("12", {"1": [3], "2": [0]}),
        "C": member("123", {"1": [4, 5], "2": [1, 2, 3], "3": [0, 1, 2, 3]}),
    }
    assert shown(assign_mixed_subscriptions(group({"1": 6, "2": 4, "3": 4}, **owners))) == {
        "A": {"1": [0, 1, 2, 5]},
        "B": {"1": [3], "2": [0, 1, 2, 3]},
        "C": {"1": [4], "3": [0, 1, 2, 3]},
    }


def test_partitions_that_were_added_go_to_the_subscriber_with_least() -> None:
    owners = {
        "A": member("13", {"1": [0, 1, 2, 3], "3": [0, 1]}),
        "B": member("1234", {"2": [0, 1, 2], "4": [0, 1, 2]}),
    }
    assert shown(assign_mixed_subscriptions(group({"1": 6, "2": 5, "3": 3, "4": 3}, **owners))) == {
        "A": {"1": [0, 1, 2, 3, 4, 5], "3": [0, 1, 2]},
        "B": {"2": [0, 1, 2, 3, 4], "4": [0, 1, 2]},
    }


def test_a_member_that_joins_while_partitions_are_added() -> None:
    owners = {
        "A": member("1", {"1": [0, 2], "2": [0]}),
        "B": member("12", {"1": [1], "2": [1, 2]}),
        "C": member("12"),
    }
    assert shown(assign_mixed_subscriptions(group({"1": 6, "2": 7}, **owners))) == {
        "A": {"1": [0, 2, 3, 4, 5]},
        "B": {"1": [1], "2": [1, 2, 6]},
        "C": {"2": [0, 3, 4, 5]},
    }


def test_what_a_member_leaves_behind_goes_to_subscribers_only() -> None:
    owners = {"A": member("13", {"1": [0, 1, 2], "3": [0, 1]}), "B": member("2", {"2": [3, 4, 5, 6]})}
    assert shown(assign_mixed_subscriptions(group({"1": 3, "2": 8, "3": 3}, **owners))) == {
        "A": {"1": [0, 1, 2], "3": [0, 1, 2]},
        "B": {"2": [0, 1, 2, 3, 4, 5, 6, 7]},
    }


def test_a_topic_a_member_no_longer_wants_goes_to_who_does() -> None:
    owners = {"A": member("1", {"1": [0, 2], "2": [1, 3]}), "B": member("12", {"1": [1], "2": [0, 2, 4]})}
    assert shown(assign_mixed_subscriptions(group({"1": 3, "2": 5}, **owners))) == {
        "A": {"1": [0, 1, 2]},
        "B": {"2": [0, 1, 2, 3, 4]},
    }


def test_a_topic_may_run_out_of_partitions_before_its_subscribers_are_even() -> None:
    owners = {"A": member("123", {"1": [0, 1], "2": [0, 1], "3": [0, 1]}), "B": member("123")}
    assert shown(assign_mixed_subscriptions(group({"1": 2, "2": 2, "3": 2}, **owners))) == {
        "A": {"2": [0], "3": [0, 1]},
        "B": {"1": [0, 1], "2": [1]},
    }


def test_who_has_most_but_nothing_of_a_topic_leaves_its_place_to_others() -> None:
    """C and D have most, but only D has something of topic 2; its partitions go on to A and B in turns."""
    owners = {
        "A": member("2"),
        "B": member("2"),
        "C": member("12", {"1": [0, 1, 2, 3, 4, 5]}),
        "D": member("2", {"2": [0, 1, 2, 3, 4, 5]}),
    }
    assert shown(assign_mixed_subscriptions(group({"1": 6, "2": 6}, **owners))) == {
        "A": {"2": [3, 5]},
        "B": {"2": [2, 4]},
        "C": {"1": [0, 1, 2, 3, 4, 5]},
        "D": {"2": [0, 1]},
    }
