"""One sync at a time; a change of what is written waits for its end."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tidelog.model.errors import StorageFailure
from tidelog.server.cluster.metadata_sync import MetadataSync


class World:
    """A log of which ``end`` records are written and ``synced`` are durable; jobs run when ``run`` is called."""

    def __init__(self) -> None:
        self.end, self.durable = 10, 4
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.told: list[tuple[int, int]] = []
        self.failures: list[Exception] = []
        self.broken = False
        self.shape = SimpleNamespace(generation=1, synced=4, end_offset=10)
        world = self

        class Log:
            log = SimpleNamespace(recovery_point=4)

            @property
            def end_offset(self) -> int:
                return world.end

            def flush_job(self) -> Any:
                if world.broken:
                    raise StorageFailure("/d", "broken")
                return SimpleNamespace(run=lambda: None, end=world.end)

            def flushed(self, job: Any, now_ms: int) -> int:
                self.log.recovery_point = job.end
                return int(job.end)

        quorum = SimpleNamespace(log=SimpleNamespace(shape=self.shape))
        member: Any = SimpleNamespace(log=Log(), generation=1, machine=SimpleNamespace(quorum=quorum))
        runtime: Any = SimpleNamespace(now_ms=lambda: 0)
        self.sync = MetadataSync(
            member,
            runtime,
            lambda job, done: self.jobs.append((job, done)),
            lambda end, generation: self.told.append((end, generation)),
            self.failures.append,
        )

    def run(self) -> None:
        job, done = self.jobs.pop(0)
        job()
        done(None)


def test_what_is_appended_during_a_sync_is_covered_by_the_next() -> None:
    world = World()
    world.sync.begin()
    world.end = 12
    world.sync.begin()
    assert len(world.jobs) == 1
    world.run()
    world.sync.begin()
    world.run()
    assert world.told == [(10, 1), (12, 1)]


def test_nothing_is_synced_twice() -> None:
    world = World()
    world.sync.begin()
    world.run()
    world.shape.synced = 10
    world.sync.begin()
    assert not world.jobs


def test_a_truncation_waits_for_the_running_sync_and_holds_back_the_next() -> None:
    world = World()
    done: list[str] = []
    world.sync.begin()
    world.sync.when_idle(lambda: done.append("cut"))
    world.run()
    assert not done
    world.sync.begin()
    assert not world.jobs
    waiting = world.sync.take_waiting()
    assert waiting is not None
    waiting()
    world.sync.when_idle(lambda: done.append("at once"))
    assert done == ["cut", "at once"]


def test_a_disk_that_fails_is_reported() -> None:
    world = World()
    world.broken = True
    world.sync.begin()
    assert [str(each) for each in world.failures] and not world.jobs
