"""Plans carried out on a cluster that moves."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from tests.unit.cli.cluster_stand_in import FakeCluster
from tidelog.cli.cluster.cluster_layout import read_layout
from tidelog.cli.cluster.move_runner import MoveRunner, Progress, Stop, reporter
from tidelog.cli.refusal import CommandFailed
from tidelog.console.moving.balance_plan import Held, plan
from tidelog.model.errors import ErrorCode

HEAPED = {("a", index): (1, 2) for index in range(6)}
EVEN = dict.fromkeys([1, 2, 3])


def runner(cluster: FakeCluster, *, concurrent: int = 2, sleep: Callable[[float], None] = lambda seconds: None) -> MoveRunner:
    layout = read_layout(cluster)
    moves = plan(layout.held(), EVEN)
    ticks = iter(range(10_000))
    return MoveRunner(
        cluster,
        moves,
        layout.under_way,
        throttle=500,
        concurrent=concurrent,
        report=lambda line: None,
        sleep=sleep,
        clock=lambda: float(next(ticks)),
    )


def test_a_plan_is_carried_out_and_the_throttles_end_with_it() -> None:
    cluster = FakeCluster(HEAPED)
    most, limited = 0, {}

    def watch(seconds: float) -> None:
        nonlocal most, limited
        most = max(most, len(cluster.moving))
        limited = cluster.throttled() or limited

    made = runner(cluster, sleep=watch)
    assert made.run()
    held = [Held(partition, replicas, 1000) for partition, replicas in cluster.replicas.items()]
    assert plan(held, EVEN) == []
    assert most == 2, "so many at a time, and no more"
    assert limited[4, "3"] == {"leader.replication.throttled.rate": "500", "follower.replication.throttled.rate": "500"}
    assert cluster.throttled() == {}
    assert all(cluster.leaders[partition] == replicas[0] for partition, replicas in cluster.replicas.items())
    assert (made.progress.done, made.progress.done_bytes) == (made.progress.total, made.progress.total_bytes)


def test_stopped_it_finishes_what_has_begun_and_the_next_run_goes_on() -> None:
    cluster = FakeCluster(HEAPED, slow=3)
    first = runner(cluster, sleep=lambda seconds: first.stop(2, None) if not first.stop.wanted else None)
    assert not first.run()
    assert cluster.moving == {}
    assert 0 < first.progress.done < first.progress.total
    assert cluster.throttled() == {}
    assert runner(cluster).run()
    held = [Held(partition, replicas, 1000) for partition, replicas in cluster.replicas.items()]
    assert plan(held, EVEN) == []


def test_a_second_interrupt_leaves_at_once_and_the_next_run_adopts_what_is_on_its_way() -> None:
    cluster = FakeCluster(HEAPED, slow=3)
    first = runner(cluster, sleep=lambda seconds: first.stop(2, None))
    with pytest.raises(KeyboardInterrupt):
        first.run()
    assert len(cluster.moving) == 2
    assert cluster.throttled() != {}
    assert runner(cluster).run()
    assert cluster.moving == {}
    assert cluster.throttled() == {}


def test_a_refused_move_is_named() -> None:
    cluster = FakeCluster(HEAPED)
    cluster.refuse = dict.fromkeys(HEAPED, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    with pytest.raises(CommandFailed, match=r"refuse to move a-\d: INVALID_REPLICA_ASSIGNMENT"):
        runner(cluster).run()


def test_a_broker_that_goes_down_is_waited_for_and_told() -> None:
    cluster = FakeCluster(HEAPED, slow=0)
    lines: list[str] = []
    looks = 0

    def later(seconds: float) -> None:
        nonlocal looks
        looks += 1
        cluster.down = (3,) if 1 < looks < 5 else ()

    made = runner(cluster, concurrent=1, sleep=later)
    made._report = lines.append
    assert made.run()
    assert any("waiting for broker 3, which is down" in line for line in lines)


def test_progress_says_how_long_it_takes() -> None:
    progress = Progress(4, 4 << 20, done=1, done_bytes=1 << 20)
    assert progress.line() == "1 of 4 partitions, 1.0 MiB of 4.0 MiB"
    progress.sample(10)
    progress.flying_bytes = 1 << 20
    progress.sample(12)
    assert progress.line() == "1 of 4 partitions, 2.0 MiB of 4.0 MiB, 512.0 KiB/s, about 4 s left"


def test_elsewhere_than_at_a_terminal_a_line_is_said_now_and_then() -> None:
    out = io.StringIO()
    say = reporter(out)
    for line in ("one", "two"):
        say(line)
    assert out.getvalue() in ("one\n", "")


def test_the_first_signal_asks_and_the_second_ends() -> None:
    stop = Stop()
    stop(2, None)
    assert stop.wanted
    with pytest.raises(KeyboardInterrupt):
        stop(2, None)
