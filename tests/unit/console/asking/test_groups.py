from __future__ import annotations

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.group_results import StreamsMember, StreamsTasks
from tidelog.console.asking.groups import STREAMS, GroupSnapshot, GroupState, Progress, by_topic, described
from tidelog.console.reading.fetching import Bounds
from tidelog.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    StreamsGroupDescribeResponse,
    TaskIds,
)


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


def test_members_of_streams_groups_keep_what_only_they_have() -> None:
    member = Member(
        member_id="m",
        topology_epoch=2,
        process_id="p",
        assignment=Assignment(
            active_tasks=[TaskIds("0", [0])], standby_tasks=[TaskIds("0", [1])], warmup_tasks=[TaskIds("1", [2])]
        ),
        target_assignment=Assignment(active_tasks=[TaskIds("1", [2])]),
        is_classic=True,
    )
    group = DescribedGroup(group_id="g", group_state="Stable", members=[member])
    (found,) = answered(described("g", STREAMS), Table(StreamsGroupDescribeResponse(groups=[group]))).members
    assert (found.assignment, found.target) == ((("0", 0),), (("1", 2),))
    tasks = StreamsTasks(found.assignment, (("0", 1),), (("1", 2),))
    assert found.streams == StreamsMember("m", None, "", "", "p", 0, 2, tasks, StreamsTasks((("1", 2),), (), ()), True)
