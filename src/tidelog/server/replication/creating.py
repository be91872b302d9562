"""Logs of many new partitions are made in turns of the loop, with room between them for whoever else is there.

A node that makes two thousand logs at once is not heard for seconds where the disk is busy: the controller in it loses its
leadership, and clients their patience. Until its log is made, a partition is one of other brokers as far as clients can tell:
they ask again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tidelog.replication.partition import Partition
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.runtime import LoopRuntime


class Creating:
    """``made`` is called with the partitions of each turn."""

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
        """What is not made yet is made by the next process."""
        self._replicas.on_postponed = None
        if self._next is not None:
            self._next.cancel()
