from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tidelog.model.errors import StorageFailure
from tidelog.server.cluster.metadata_snapshots import SnapshotWriting


class World:
    def __init__(self, problem: Exception | None = None) -> None:
        self.failures: list[Exception] = []
        self.began = 0
        self.due = True

        def finished(job: Any, now_ms: int) -> list[str]:
            if problem is not None:
                raise problem
            return ["an old snapshot"]

        job = SimpleNamespace(run=lambda breathe: None, id=SimpleNamespace(file_name="00-1.checkpoint"), size=7)
        member: Any = SimpleNamespace(snapshot_due=lambda now: self.due, snapshot_job=lambda now: job, snapshot_finished=finished)
        self.runner: Any = SimpleNamespace(refusal=None, fail=self.failures.append)
        runtime: Any = SimpleNamespace(now_ms=lambda: 0, breathe=lambda: None, run_long=self.run_long)
        self.writing = SnapshotWriting(member, runtime, self.runner)

    def run_long(self, job: Any) -> Any:
        self.began += 1
        job()
        return SimpleNamespace(add_done_callback=lambda done: done(None))


def test_a_snapshot_is_written_when_it_is_due_and_the_member_runs() -> None:
    world = World()
    world.writing.step()
    world.due = False
    world.writing.step()
    world.due, world.runner.refusal = True, "stopped"
    world.writing.step()
    assert (world.began, world.failures) == (1, [])


def test_a_disk_that_fails_ends_the_member() -> None:
    problem = StorageFailure("/d", "broken")
    world = World(problem)
    world.writing.step()
    assert world.failures == [problem]
