"""What is shown of a share group."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import share_group_report as report
from tidelog.client.admin.group_results import ShareGroup, ShareMember, ShareOffset

MEMBERS = (ShareMember("m2", "c", "/h", 7, ()), ShareMember("m1", "c", "/h", 7, (("t", 0), ("t", 1), ("u", 2))))
GROUP = ShareGroup("g", "Stable", "simple", MEMBERS, 7, 6)


class Session:
    """Answers calls in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def run(self, call: Any) -> Any:
        call.close()
        return self.answers.pop(0)

    def coordinator(self, group_id: str) -> tuple[int, str, int]:
        return 3, "h", 9092


def test_offsets_that_are_not_known_have_no_lag() -> None:
    session: Any = Session({("t", 1): ShareOffset(4, 2, 5), ("t", 0): ShareOffset(None, None, None)})
    columns, rows = report.offsets(session, GROUP, True)
    assert [column.title for column in columns] == ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"]
    assert [(row["partition"], row["start_offset"], row["leader_epoch"], row["lag"]) for row in rows] == [
        (0, None, None, None),
        (1, 4, 2, 5),
    ]


def test_members_come_by_id_with_what_they_share() -> None:
    session: Any = Session()
    columns, rows = report.members(session, GROUP, False)
    assert "MEMBER-EPOCH" not in [column.title for column in columns]
    assert [(row["consumer_id"], row["partitions"], row["assignment"]) for row in rows] == [("m1", 3, "t:0,1;u:2"), ("m2", 0, "")]


def test_the_state_names_the_coordinator_and_both_epochs() -> None:
    session: Any = Session()
    columns, (row,) = report.states(session, GROUP, True)
    assert [row[column.key] for column in columns] == ["g", "h:9092  (3)", "Stable", 7, 6, 2]


def test_offsets_of_a_group_with_members_stay() -> None:
    session: Any = Session("Stable")
    with pytest.raises(CommandFailed, match="'g' is Stable"):
        report.reset(session, "g", "to-latest", "", ["t"], execute=True)
