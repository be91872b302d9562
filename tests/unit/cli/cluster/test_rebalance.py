"""rebalance: what it refuses, what it shows, what it does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.cluster_stand_in import FakeCluster
from tidelog.cli import admin_session
from tidelog.cli.cluster import move_runner, rebalance
from tidelog.cli.cluster.cluster_layout import read_layout
from tidelog.cli.cluster.rebalance import notes_on, plan_lines, targets_of
from tidelog.cli.refusal import CommandFailed

HEAPED = {("a", index): (1, 2) for index in range(6)}


def run(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, *flags: str) -> Result:
    monkeypatch.setattr(admin_session, "AdminSession", lambda *args: cluster)
    monkeypatch.setattr(move_runner, "POLL_S", 0)
    return CliRunner().invoke(rebalance.command, ["--bootstrap-server", "h:1", *flags])


def test_a_dry_run_shows_the_plan_and_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(HEAPED, size=50 << 20)
    result = run(monkeypatch, cluster, "--dry-run", "--throttle", "10M")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Cluster fake: 3 brokers, 6 partitions, 12 replicas."
    assert lines[4].split() == ["3", "-", "0", "->", "4", "0", "->", "2", "0", "B", "->", "200.0", "MiB"]
    assert lines[5] == "4 replicas of 4 partitions to copy: 200.0 MiB."
    assert "At 10.0 MiB/s for each broker: 20 s at least." in lines
    assert cluster.replicas == HEAPED


def test_without_a_yes_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(HEAPED)
    result = run(monkeypatch, cluster)
    assert (result.exit_code, cluster.replicas) == (1, HEAPED)
    assert "give --yes" in result.stderr


def test_with_a_yes_it_is_balanced_and_a_second_call_has_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(HEAPED)
    first = run(monkeypatch, cluster, "--yes")
    assert first.exit_code == 0, first.output
    assert "Throttles are taken away." in first.stdout
    assert [sum(broker in replicas for replicas in cluster.replicas.values()) for broker in (1, 2, 3)] == [4, 4, 4]
    assert "Nothing has to move." in run(monkeypatch, cluster, "--yes").stdout


def test_the_plan_for_programs_is_a_reassignment_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from tidelog.cli.tools.reassignment_json import parse_proposal

    result = run(monkeypatch, FakeCluster(HEAPED), "--json")
    values = json.loads(result.stdout)
    assert values["bytesMoved"] == 4000
    assert {each["broker"]: each["after"]["replicas"] for each in values["brokers"]} == {1: 4, 2: 4, 3: 4}
    assert len(parse_proposal(result.stdout).replicas) == len(values["partitions"])


def test_throttles_that_a_killed_run_left_are_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster({("a", 0): (1,), ("a", 1): (2,), ("a", 2): (3,)})
    cluster.settings = {
        (4, "2"): {"leader.replication.throttled.rate": "5"},
        (2, "a"): {"leader.replication.throttled.replicas": "0:1"},
    }
    assert "left on broker 2" in run(monkeypatch, cluster, "--yes").stderr
    assert cluster.throttled() == {}


def test_a_broker_that_is_down_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = read_layout(FakeCluster(HEAPED, down=(3,)))
    with pytest.raises(CommandFailed, match=r"Broker 3 is registered, and down.*tidelog drain 3"):
        targets_of(layout, None)
    with pytest.raises(CommandFailed, match="Broker 3 of --broker-list is down"):
        targets_of(layout, "1,3")
    with pytest.raises(CommandFailed, match=r"Broker 9 of --broker-list is not known; the cluster has 1, 2, 3"):
        targets_of(layout, "9")
    with pytest.raises(CommandFailed, match="brokers are numbers"):
        targets_of(layout, "one")
    assert targets_of(layout, "2,1") == [1, 2]
    assert run(monkeypatch, FakeCluster(HEAPED, down=(3,))).exit_code == 1


def test_leadership_that_went_elsewhere_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    even = {("a", 0): (1, 2), ("a", 1): (2, 3), ("a", 2): (3, 1)}
    cluster = FakeCluster(even)
    cluster.leaders = {("a", 0): 2, ("a", 1): 2, ("a", 2): 1}
    result = run(monkeypatch, cluster, "--yes")
    assert "2 partitions led by another than the preferred leader" in result.stdout
    assert cluster.leaders == {partition: replicas[0] for partition, replicas in even.items()}
    assert cluster.replicas == even


def test_too_few_brokers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, FakeCluster(HEAPED), "--broker-list", "1")
    assert (result.exit_code, "a-0 has 2 replicas" in result.stderr) == (1, True)


def test_what_the_reader_should_know_is_noted() -> None:
    cluster = FakeCluster(HEAPED, racks={1: "x", 2: None, 3: "y"}, slow=9)
    cluster.settings[4, "3"] = {"cordoned.log.dirs": "*"}
    cluster.moving["a", 0] = (1, 2), 9
    layout = read_layout(cluster)
    targets = targets_of(layout, None)
    assert targets == [1, 2]
    notes = notes_on(layout, {broker: layout.racks[broker] for broker in targets}, ignored=False)
    assert [note.split(":")[0] for note in notes[:1]] == ["Racks do not count"]
    assert "tidelog drain 3 --undo" in notes[1]
    assert "1 partition on the way already" in notes[2]


def test_a_long_plan_is_cut() -> None:
    cluster = FakeCluster({("a", index): (1,) for index in range(60)})
    layout = read_layout(cluster)
    from tidelog.console.moving.balance_plan import plan

    lines = plan_lines(layout, plan(layout.held(), dict.fromkeys([1, 2, 3])), None)
    assert lines[-1] == "  ... and 20 more (--json shows all)"
