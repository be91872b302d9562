"""drain: off a broker, up or down, and what is in the way."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.cluster_stand_in import FakeCluster
from tidelog.cli import admin_session
from tidelog.cli.cluster import drain, move_runner
from tidelog.cli.cluster.cluster_layout import read_layout
from tidelog.cli.cluster.drain import moves_off
from tidelog.cli.refusal import CommandFailed

SPREAD = {("a", 0): (1, 2), ("a", 1): (2, 3), ("a", 2): (3, 1)}
FOUR = dict.fromkeys([1, 2, 3, 4])


def run(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, *flags: str) -> Result:
    monkeypatch.setattr(admin_session, "AdminSession", lambda *args: cluster)
    monkeypatch.setattr(move_runner, "POLL_S", 0)
    return CliRunner().invoke(drain.command, ["--bootstrap-server", "h:1", *flags])


def test_a_drained_broker_has_nothing_and_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(SPREAD)
    result = run(monkeypatch, cluster, "1", "--yes")
    assert result.exit_code == 0, result.output
    assert all(1 not in replicas for replicas in cluster.replicas.values())
    assert 1 not in cluster.leaders.values()
    assert cluster.throttled() == {(4, "1"): {"cordoned.log.dirs": "*"}}
    assert "kafka-cluster unregister --id 1" in result.stdout
    assert run(monkeypatch, cluster, "1", "--undo").exit_code == 0
    assert cluster.throttled() == {}


def test_a_dry_run_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(SPREAD)
    assert run(monkeypatch, cluster, "1", "--dry-run", "--yes").exit_code == 0
    assert (cluster.replicas, cluster.throttled()) == (SPREAD, {})


def test_a_broker_that_is_down_is_replaced_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(SPREAD, racks=FOUR, down=(1,))
    result = run(monkeypatch, cluster, "1", "--yes")
    assert result.exit_code == 0, result.output
    assert "copied from the others" in result.stdout
    assert all(1 not in replicas for replicas in cluster.replicas.values())
    assert cluster.throttled() == {}, "nobody is there to be cordoned"


def test_others_that_are_down_keep_what_they_have_and_get_nothing() -> None:
    layout = read_layout(FakeCluster(SPREAD, racks=FOUR, down=(3,)))
    after = {move.partition: move.after for move in moves_off(layout, 1)}
    assert after == {("a", 0): (4, 2), ("a", 2): (3, 4)}


@pytest.mark.parametrize(
    ("cluster", "node", "says"),
    [
        (FakeCluster({("a", 0): (1, 2, 3)}), 1, "a-0 has 3 replicas, and only 2 brokers would be left"),
        (FakeCluster({("a", 0): (1, 2)}, down=(3,)), 1, "no broker left that could take the one of broker 1"),
        (FakeCluster({("a", 0): (1,)}, down=(1,)), 1, r"have no leader to copy from: a-0"),
        (FakeCluster(SPREAD), 9, "The cluster has no broker 9; it has 1, 2, 3"),
    ],
)
def test_what_would_break_a_partition_is_refused_by_name(cluster: FakeCluster, node: int, says: str) -> None:
    with pytest.raises(CommandFailed, match=says):
        moves_off(read_layout(cluster), node)
