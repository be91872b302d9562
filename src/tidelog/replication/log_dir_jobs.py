"""Blocking work on log dirs that the node does from time to time: removing files whose delay has passed, writing checkpoints.

A job that fails takes its log dir offline. What the jobs are: ``storage.log_upkeep``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from tidelog.storage.log_upkeep import LogUpkeep


class Background(Protocol):
    """Runs blocking jobs outside the event loop."""

    def __call__(self, job: Callable[[], None], done: Callable[[int], None], /) -> None:
        """Run ``job`` in a worker thread, then call ``done`` on the loop with the time in ms. ``job`` raises nothing."""
        ...


class _Job(Protocol):
    def run(self) -> None: ...


J = TypeVar("J", bound=_Job)


class LogDirJobs:
    """``follow_failures`` is called when a job may have taken a log dir offline."""

    __slots__ = ("_background", "_follow_failures", "_upkeep")

    def __init__(self, upkeep: LogUpkeep, background: Background, follow_failures: Callable[[], None]) -> None:
        self._upkeep = upkeep
        self._background = background
        self._follow_failures = follow_failures

    def remove_due(self, even_ms: int) -> int:
        """Delete the files whose delay has passed, in the background; returns the number of jobs."""
        due = self._upkeep.removals_due(even_ms)
        for job in due:
            self._run(job, self._upkeep.removed)
        return len(due)

    def checkpoint(self) -> None:
        """Write the high watermarks, recovery points and log starts of every log dir, in the background."""
        for job in self._upkeep.checkpoint_jobs():
            self._run(job, self._upkeep.checkpointed)

    def _run(self, job: J, take: Callable[[J], None]) -> None:
        def done(_even_ms: int) -> None:
            take(job)
            self._follow_failures()

        self._background(job.run, done)
