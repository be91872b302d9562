"""When a node may be stopped."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.unit.cli.cluster_stand_in import FakeCluster
from tidelog.cli import admin_session
from tidelog.cli.cluster.safe_to_stop import SILENT_MS, Verdict, VoterSeen, command, judge, read_verdict
from tidelog.console.moving.layout import Seen

VOTERS = [VoterSeen(each, 0, True) for each in (1, 2, 3)]


def seen(replicas: tuple[int, ...], in_sync: tuple[int, ...]) -> list[Seen]:
    return [Seen(("a", 0), in_sync[0] if in_sync else None, replicas, in_sync)]


def test_a_node_may_go_while_enough_others_are_in_sync() -> None:
    assert judge(1, seen((1, 2, 3), (1, 2, 3)), {"a": 2}, VOTERS) == Verdict()
    assert judge(1, seen((1, 2, 3), (1, 2)), {"a": 1}, VOTERS) == Verdict()
    (text,) = judge(1, seen((1, 2, 3), (1, 2)), {"a": 2}, VOTERS).wait_for
    assert text == "a-0: 1 in sync without it, and 2 needed: broker 3 is behind"


def test_a_node_that_is_behind_itself_or_holds_nothing_may_go() -> None:
    assert judge(1, seen((1, 2, 3), (2,)), {"a": 2}, VOTERS).wait_for == ()
    assert judge(1, seen((2, 3), (2,)), {"a": 2}, VOTERS) == Verdict()


def test_what_waiting_does_not_help_is_told_apart() -> None:
    alone = judge(1, seen((1,), (1,)), {}, VOTERS)
    assert (alone.wait_for, len(alone.unavoidable)) == ((), 1)
    tight = judge(1, seen((1, 2), (1, 2)), {"a": 2}, VOTERS)
    assert "min.insync.replicas is 2" in tight.unavoidable[0]
    assert "no majority without this node" in judge(1, [], {}, VOTERS[:1]).unavoidable[0]


def test_partitions_are_summed_up_by_topic() -> None:
    alone = [Seen((topic, index), 1, (1,), (1,)) for topic in ("a", "b") for index in range(3)] + [Seen(("c", 7), 1, (1,), (1,))]
    assert judge(1, alone, {}, VOTERS).unavoidable == (
        "a, 3 partitions: no other replica: unavailable meanwhile",
        "b, 3 partitions: no other replica: unavailable meanwhile",
        "c-7: no other replica: unavailable meanwhile",
    )


@pytest.mark.parametrize("other", [VoterSeen(2, SILENT_MS, True), VoterSeen(2, 0, False)])
def test_the_quorum_keeps_a_majority(other: VoterSeen) -> None:
    (text,) = judge(1, [], {}, [VOTERS[0], other, VOTERS[2]]).wait_for
    assert text == "the metadata quorum would have no majority: voter 2 is down or behind"
    assert judge(9, [], {}, [VOTERS[0], other, VOTERS[2]]) == Verdict(), "a broker that does not vote"
    five = [VOTERS[0], other, VOTERS[2], VoterSeen(4, 0, True), VoterSeen(5, 0, True)]
    assert judge(1, [], {}, five) == Verdict()


def test_a_cluster_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster({("a", 0): (1, 2, 3)}, down=(3,))
    cluster.settings[2, "a"] = {"min.insync.replicas": "2"}
    verdict = read_verdict(cluster, 1)
    assert [text.split(":")[0] for text in verdict.wait_for] == [
        "a-0",
        "the metadata quorum would have no majority",
    ]
    monkeypatch.setattr(admin_session, "AdminSession", lambda *args: cluster)
    result = CliRunner().invoke(command, ["1", "--bootstrap-server", "h:1"])
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "Node 1 should not be stopped yet.")
    cluster.down = ()
    result = CliRunner().invoke(command, ["1", "--bootstrap-server", "h:1", "--wait", "1", "--output", "json"])
    assert (result.exit_code, json.loads(result.stdout)["safe"]) == (0, True)
    unknown = CliRunner().invoke(command, ["9", "--bootstrap-server", "h:1"])
    assert (unknown.exit_code, unknown.stderr) == (1, "Error: The cluster has no node 9; it has 1, 2, 3.\n")
