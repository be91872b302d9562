"""Readers of a simulated cluster: from the beginning, over and over. What one has seen at an offset, all see there for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.clients import History
from tidelog.model.ids import TopicPartition
from tidelog.testing.simulation.client import Client, Later
from tidelog.testing.simulation.reading import DamagedBatch, fetch


class Reader:
    """See the module. ``committed``: nothing of transactions that are open or aborted. ``damaged``: nodes on whose disks bits
    have turned: only from there a damaged batch may come, and it has to be told by its checksum."""

    def __init__(
        self, client: Client, history: History, partitions: Sequence[TopicPartition], *, committed: bool, damaged: set[int]
    ) -> None:
        self.client, self.history = client, history
        self.partitions, self.committed, self.damaged = list(partitions), committed, damaged
        self._positions = dict.fromkeys(self.partitions, 0)

    async def run(self, stop: Callable[[], bool], pace_s: float) -> None:
        while not stop():
            at = self.client.rng.choice(self.partitions)
            try:
                await self._read(at)
            except Later:
                self.client.lost(at)
            except DamagedBatch as damage:
                self.history.rare["damaged batches found by readers"] += 1
                if damage.broker not in self.damaged:
                    self.history.wrong.append(f"a reader got what no disk has damaged: {damage}")
            if self.client.rng.random() < 0.15:
                self._positions[at] = 0
            await self.client.pause(pace_s)

    async def _read(self, at: TopicPartition) -> None:
        page = await fetch(self.client, at, self._positions[at], committed=self.committed)
        seen = self.history.seen.setdefault(at, {})
        for record in page.records:
            assert record.value is not None
            known = seen.setdefault(record.offset, record.value)
            if known != record.value:
                self.history.wrong.append(f"{at} showed {known!r} at offset {record.offset}, and then {record.value!r}")
            if record.value not in self.history.tried:
                self.history.wrong.append(f"{at} shows {record.value!r} at offset {record.offset}, which nobody wrote")
            if self.committed and record.value in self.history.given_up:
                self.history.wrong.append(f"{at} shows {record.value!r} of an aborted transaction at offset {record.offset}")
        if page.records:
            self.history.operations += 1
        self._positions[at] = max(self._positions[at], page.next_offset)
