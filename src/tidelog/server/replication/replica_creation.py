"""Creates the logs of many new partitions over several turns of the loop, so that other work continues in between.

Creating two thousand logs at once can block a node for seconds when the disk is busy: its controller would lose the leadership,
and clients would time out. Until its log is created, a partition looks to clients as if other brokers led it, so they retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tidelog.replication.partition import Partition
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.runtime import LoopRuntime


class Creating:
    """Calls ``made`` with the partitions created in each turn."""

    def __init__(self, replicas: ReplicaManager, runtime: LoopRuntime, made: Callable[[Sequence[Partition]], None]) -> None:
        self._replicas = replicas
        self._runtime = runtime
        self._made = made
        self._next: asyncio.Handle | None = None
        replicas.on_postponed = self._soon

    def _soon(self) -> None:
        if self._next is None:
            self._next = self._runtime.loop.call_soon(self._step)

    def _step(self) -> None:
        self._next = None
        made = self._replicas.create_step(self._runtime.even_ms())
        if self._replicas.postponed:
            self._soon()
        if made:
            self._made(made)

    def stop(self) -> None:
        """The next process creates the remaining logs."""
        self._replicas.on_postponed = None
        if self._next is not None:
            self._next.cancel()
