"""Whole clusters in virtual time, in a short form; the long one is ``make sim-cluster``."""

import collections
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sim.cluster_bugs import BUGS, planted
from sim.cluster_checks import Violation
from sim.cluster_run import counts, play, read_reports, summary
from sim.cluster_world import ClusterRun
from sim.rare import counted
from tidelog.records.batch import iter_headers
from tidelog.storage import unified_log as storage_log
from tidelog.storage.log_table import LogTable
from tidelog.testing.simulation.machines import Machine

# A coroutine that nobody awaited would be a leak of the node: those of dead machines are closed by the simulator.
pytestmark = [pytest.mark.filterwarnings("error:coroutine .* was never awaited"), pytest.mark.timeout(600)]
SEEDS = int(os.environ.get("TIDELOG_CLUSTER_SEEDS", "2"))
BUSY_S = 15.0
ROW: dict[str, Any] = {
    "seed": 1,
    "virtual_s": 61.0,
    "operations": 500,
    "acked": 600,
    "committed": 5,
    "aborted": 1,
    "leader_changes": 1,
    "controller_changes": 0,
    "faults": {"kill": 5},
}


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_a_cluster_keeps_its_promises_under_faults_and_all_moves_again_when_they_end(seed: int) -> None:
    report = ClusterRun(seed, busy_s=BUSY_S).run()
    assert report.operations > 100
    assert report.acked > 100
    assert report.leader_changes > 0
    assert sum(report.faults.values()) > 0


def test_a_seed_gives_the_same_run_under_every_hash_seed() -> None:
    """Down to the number of steps and the moment of the end."""
    program = (
        "import dataclasses; from sim.cluster_world import ClusterRun; "
        "run = ClusterRun(5, busy_s=6.0); print(dataclasses.asdict(run.run()), run.history.acked)"
    )
    printed = set()
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        printed.add(hashlib.sha256(done.stdout.encode()).hexdigest())
    assert len(printed) == 1


def test_seeds_that_run_at_the_same_time_do_what_they_do_alone(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    words = ["--from", "1", "--seeds", "2", "--busy", "2", "--jobs", "2", "--file", str(file)]
    subprocess.run([sys.executable, "-m", "sim.cluster_run", *words], capture_output=True, check=True)
    first, second = read_reports([file])
    assert (first["seed"], second["seed"]) == (1, 2)
    alone = play(1, 2.0, None, False)
    assert (alone.violation, alone.row["digest"]) == ("", first["digest"])
    assert alone.row["digest"] != second["digest"]


def test_a_record_that_goes_missing_is_a_violation() -> None:
    run = ClusterRun(1, busy_s=2.0)
    original = run.checks.records

    def forget_one() -> None:
        partition = next(
            partition
            for machine in run.cluster.brokers
            for partition in machine.node.broker.replicas.partitions()  # type: ignore[union-attr]
            if partition.is_leader and partition.topic == "plain" and partition.log is not None and partition.log.log_end_offset
        )
        partition.log.high_watermark -= 1  # type: ignore[union-attr]
        original()

    run.checks.records = forget_one  # type: ignore[method-assign]
    with pytest.raises(Violation, match=r"high watermark|acknowledged|differ"):
        run.run()


def test_a_batch_that_was_damaged_just_before_the_end_is_mended_before_replicas_are_compared() -> None:
    """Seed 112 compared them while the node that had found the damage at its start was about to mend it."""
    run = ClusterRun(1, busy_s=4.0)
    honest = run.faults.end

    def damage_and_end() -> None:
        machine = next(each for each in run.cluster.brokers if each.serving)
        path = segments_of(machine, "plain-0")[-1]
        file = machine.disk.open(path, write=False)
        batch = next(iter_headers(file.read(0, file.size())))  # with which the leader's epoch began
        machine.disk.flip(path, batch.position + batch.size - 1, 3)
        run.faults.damage.machines.add(machine.node_id)
        machine.kill()
        honest()

    run.faults.end = damage_and_end  # type: ignore[method-assign]
    assert run.run().rare["damaged ranges mended"] == 1


def segments_of(machine: Machine, partition: str) -> list[str]:
    names = [f"/data/{partition}/{name}" for name in machine.disk.listdir(f"/data/{partition}") if name.endswith(".log")]
    return [name for name in names if machine.disk.stat(name).size]


def test_a_run_with_too_little_in_it_does_not_count() -> None:
    assert counts(ROW)
    assert not counts(ROW | {"operations": 499})
    assert not counts(ROW | {"faults": {"kill": 4}})
    assert not counts(ROW | {"leader_changes": 0})
    assert "2 seeds, 1 of them hard enough" in summary([ROW, ROW | {"virtual_s": 59.0}])


def test_finished_seeds_of_several_files_are_summed_each_once_with_the_rare_branches_they_reached(tmp_path: Path) -> None:
    row = ROW | {"rare": {"log dirs failed": 2}}
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(json.dumps(row) + "\n")
    second.write_text(json.dumps(row) + "\n" + json.dumps(row | {"seed": 2, "rare": {"log dirs failed": 1}}) + "\n")
    rows = read_reports([first, second, tmp_path / "none"])
    assert [row["seed"] for row in rows] == [1, 2]
    assert "rare branches: log dirs failed 3 (2 seeds)" in summary(rows)


def test_rare_branches_are_counted_while_a_run_lasts_and_the_code_is_as_it_was_afterwards() -> None:
    rare: collections.Counter[str] = collections.Counter()
    honest = LogTable.fail_dir
    with counted(rare):
        assert LogTable.fail_dir is not honest
        validated = storage_log.validate_replicated(b"no batch, but bytes enough to look like the beginning of one" * 3, 0)
    assert validated.error
    assert LogTable.fail_dir is honest
    assert rare == {"damaged batches refused by followers": 1}


@pytest.mark.parametrize("name", BUGS)
def test_every_bug_can_still_be_planted(name: str) -> None:
    """It names functions of the product, and ``patched`` raises where one is gone."""
    with planted(name):
        pass
