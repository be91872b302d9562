from __future__ import annotations

from tidelog.console.asking.groups import GroupSnapshot, GroupState, Progress, by_topic
from tidelog.console.reading.fetching import Bounds


def test_lag_is_never_negative_and_unknown_without_an_end() -> None:
    assert Progress(90, Bounds(0, 100, 100)).lag == 10
    assert Progress(110, Bounds(0, 100, 100)).lag == 0
    assert Progress(90, Bounds(error="LEADER_NOT_AVAILABLE")).lag is None
    assert Progress(None, Bounds(0, 100, 100)).lag is None
    assert Progress(90, Bounds(0, 100, 100), known_lag=3).lag == 3


def test_the_lag_of_a_group_is_the_sum_of_what_is_known() -> None:
    group = GroupState("g", "classic", "Empty", None, None, None, ())
    some = {("a", 0): Progress(1, Bounds(0, 5, 5)), ("a", 1): Progress(None, Bounds(0, 5, 5))}
    assert GroupSnapshot(group, 1, some).lag == 4
    assert GroupSnapshot(group, 1, {}).lag is None


def test_partitions_by_topic() -> None:
    assert by_topic([("b", 1), ("a", 2), ("b", 0)]) == [
        {"topic": "a", "partitions": [2]},
        {"topic": "b", "partitions": [0, 1]},
    ]
