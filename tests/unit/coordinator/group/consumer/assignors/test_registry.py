"""Assignors are found by Kafka's names."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer.assignors.groups import group, member, shown
from tidelog.coordinator.group.consumer.assignors.registry import ASSIGNORS, assign
from tidelog.coordinator.group.consumer.assignors.spec import PartitionAssignorError


def test_uniform_is_the_first_and_so_the_default() -> None:
    assert list(ASSIGNORS) == ["uniform", "range"]


def test_an_assignor_is_called_by_its_name() -> None:
    spec = group({"1": 2, "2": 1}, A=member("12"), B=member("12"))
    assert shown(assign("range", spec)) == {"A": {"1": [0], "2": [0]}, "B": {"1": [1]}}
    assert shown(assign("uniform", spec)) == {"A": {"1": [0]}, "B": {"1": [1], "2": [0]}}


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(PartitionAssignorError, match="uniform, range"):
        assign("sticky", group({"1": 2}, A=member("1")))
