"""What is shown of a streams group, and which topics are its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import streams_group_report as report
from tidelog.cli.tools.group_state import Committed
from tidelog.client.admin.group_results import StreamsGroup, StreamsMember, StreamsSubtopology, StreamsTasks
from tidelog.model.ids import EARLIEST_TIMESTAMP

NONE = StreamsTasks((), (), ())
TASKS = StreamsTasks((("0", 0), ("0", 1), ("1", 0)), (("1", 1),), ())
SUBTOPOLOGIES = (
    StreamsSubtopology("0", ("in",), (), ("g-x-repartition",), ()),
    StreamsSubtopology("1", (), ("g-x-repartition",), (), ("g-s-changelog", "other-changelog")),
)
MEMBER = StreamsMember("m", None, "c", "/h", "p", 5, 0, TASKS, NONE, False)
GROUP = StreamsGroup("g", "Stable", (MEMBER,), 5, 5, 0, SUBTOPOLOGIES)


class Session:
    """A cluster in which topic "in" has 2 partitions and the others 1; all end at 9 and begin at 2."""

    def __init__(self, group: StreamsGroup = GROUP, missing: frozenset[str] = frozenset()) -> None:
        self.group = group
        self.missing = missing

    def run(self, call: Any) -> Any:
        call.close()
        return self.group

    def metadata(self, topics: Any) -> list[Any]:
        return [
            SimpleNamespace(
                name=topic, partitions=[0] * (2 if topic == "in" else 1), error_code=3 if topic in self.missing else 0
            )
            for topic in sorted(topics)
        ]

    def list_offsets(self, wanted: dict[Any, int]) -> dict[Any, Any]:
        return {at: SimpleNamespace(offset=2 if time == EARLIEST_TIMESTAMP else 9, error_code=0) for at, time in wanted.items()}

    def coordinator(self, group_id: str) -> tuple[int, str, int]:
        return 3, "h", 9092


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    old = {("in", 0): Committed(4, 1), ("g-x-repartition", 0): Committed(9, -1), ("left", 0): Committed(1, -1)}
    monkeypatch.setattr(report, "committed", lambda session, group_id: old)
    return Session()


def test_lag_is_counted_from_the_start_where_nothing_was_committed(session: Any) -> None:
    columns, rows = report.offsets(session, GROUP, True)
    assert [column.title for column in columns][3:] == ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG"]
    assert [(row["topic"], row["partition"], row["current_offset"], row["leader_epoch"], row["lag"]) for row in rows] == [
        ("g-x-repartition", 0, 9, None, 0),
        ("in", 0, 4, 1, 5),
        ("in", 1, None, None, 7),
    ]


def test_members_show_their_tasks_by_role(session: Any) -> None:
    _, (row,) = report.members(session, GROUP, False)
    assert row["assignments"] == "ACTIVE: 0:[0,1]; 1:[0]; STANDBY: 1:[1];"
    target = StreamsMember("m", None, "c", "/h", "p", 5, 0, NONE, TASKS, True)
    _, (row,) = report.members(session, StreamsGroup("g", "Stable", (target,), 5, 5, 0, SUBTOPOLOGIES), True)
    assert row["assignments"] == "TARGET-ACTIVE: 0:[0,1]; 1:[0]; TARGET-STANDBY: 1:[1];"
    assert row["member_protocol"] == "classic"


def test_the_state_names_the_coordinator_and_both_epochs(session: Any) -> None:
    columns, (row,) = report.states(session, GROUP, True)
    assert [row[column.key] for column in columns] == ["g", "h:9092 (3)", "Stable", 5, 5, 1]


def test_a_group_with_members_keeps_its_offsets(session: Any) -> None:
    with pytest.raises(CommandFailed, match="'g' is Stable"):
        report.without_members(session, "g")


def test_input_topics_are_external_ones_with_offsets_or_those_named(session: Any) -> None:
    assert report.input_topics(session, GROUP, []) == ["in:0"]
    assert report.input_topics(session, GROUP, ["in:1", "g-x-repartition"]) == ["in:1", "g-x-repartition"]
    with pytest.raises(CommandFailed, match="does not read left"):
        report.input_topics(session, GROUP, ["left:0"])


def test_internal_topics_exist_and_bear_the_name_of_the_group(session: Any) -> None:
    assert report.internal_topics(session, "g") == ["g-s-changelog", "g-x-repartition"]
    assert report.internal_topics(session, "g", ["g-s-changelog"]) == ["g-s-changelog"]
    with pytest.raises(CommandFailed, match="no internal topic in"):
        report.internal_topics(session, "g", ["in"])
    without: Any = Session(missing=frozenset({"g-s-changelog"}))
    assert report.internal_topics(without, "g") == ["g-x-repartition"]
