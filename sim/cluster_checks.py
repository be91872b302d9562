"""What has to hold in a simulated cluster: looked at while it runs, and when it has come to rest.

While it runs: one leader for each epoch, of partitions and of the metadata quorum; watermarks and epochs that never go back
within the life of a process. At rest: replicas agree below the high watermark, what was acknowledged is there, each value once,
transactions are whole, offsets are not older than what was acknowledged, and everybody has the same metadata.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

from sim.clients import History
from sim.cluster_quorum import QuorumChecks
from sim.members import committed_offsets
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import BatchHeader, iter_headers
from tidelog.records.control import parse_end_txn_marker
from tidelog.records.record import iter_records
from tidelog.replication.partition import Partition
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.client import Client, Later
from tidelog.testing.simulation.cluster import SimCluster
from tidelog.testing.simulation.machines import Machine

LOOK_S = 0.05
OURS = ("plain", "tx")


class Violation(AssertionError):
    """Something that must hold does not."""


class Checks:
    """See the module."""

    def __init__(self, cluster: SimCluster, history: History) -> None:
        self.cluster, self.history = cluster, history
        self.leader_changes = 0
        self.quorum = QuorumChecks(cluster, history)
        self.why = ""
        """What has not ended yet."""
        self._leaders: dict[tuple[bytes, int, int], int] = {}
        self._epochs: dict[tuple[bytes, int], int] = {}
        self._watermarks: dict[tuple[int, int, bytes, int], tuple[Partition, int]] = {}
        self._exposed: dict[tuple[bytes, int], int] = {}
        """The highest watermark that a leader of the partition ever had."""

    # While it runs

    def watch(self) -> None:
        """From now on, again and again."""
        self.quorum.watch(self.cluster.agenda)

        def look() -> None:
            for machine in self.cluster.brokers:
                if machine.running and machine.serving:
                    self._look(machine)
            self.cluster.agenda.call_later(LOOK_S, look)

        look()

    def _look(self, machine: Machine) -> None:
        node: Any = machine.node
        for partition in node.broker.replicas.partitions():
            if partition.log is not None:
                self._look_at(machine, partition, partition.log)

    def _look_at(self, machine: Machine, partition: Partition, log: UnifiedLog) -> None:
        key = (bytes(partition.topic_id), partition.index)
        watermark = (machine.node_id, machine.starts, *key)
        same, before = self._watermarks.get(watermark, (partition, -1))
        if same is not partition:
            before = -1  # the replica was moved away, and has come back to begin anew
        now = log.high_watermark
        if now < before:
            self._wrong(f"{_where(partition, machine)}: the high watermark went from {before} to {now}")
        if now != before or same is not partition:
            self._watermarks[watermark] = partition, now
        if not partition.is_leader:
            return
        if now > self._exposed.get(key, -1):
            self._exposed[key] = now
        epoch = partition.leader_epoch
        known = self._leaders.setdefault((*key, epoch), machine.node_id)
        if known != machine.node_id:
            self._wrong(f"{_where(partition, machine)}: epoch {epoch} is led by node {known}, too")
        former = self._epochs.get(key, -1)
        if epoch > former:
            self.leader_changes += former >= 0
            self._epochs[key] = epoch

    def _wrong(self, what: str) -> None:
        self.history.wrong.append(what)

    # At rest

    def transactions_ended(self) -> bool:
        """Nothing is open, replicas have what their leaders have exposed, and every leader knows that it leads."""
        there: set[TopicPartition] = set()
        led: set[TopicPartition] = set()
        for machine in self.cluster.brokers:
            if not machine.serving:
                return False
            for partition in machine.node.broker.replicas.partitions():  # type: ignore[union-attr]
                log = partition.log
                if log is None or log.high_watermark < log.log_end_offset or log.last_stable_offset < log.high_watermark:
                    self.why = f"{partition.topic_partition} on node {machine.node_id} has no end yet"
                    return False
                there.add(partition.topic_partition)
                if partition.is_leader:
                    led.add(partition.topic_partition)
        if there != led:
            self.why = f"{min(there - led)} has a leader that does not know it yet"
        return there == led

    def records(self) -> None:
        """Replicas agree; what was acknowledged is there; nothing is there that nobody wrote; transactions are whole."""
        logs: dict[TopicPartition, list[tuple[int, bool, UnifiedLog]]] = collections.defaultdict(list)
        for machine in self.cluster.brokers:
            for partition in machine.node.broker.replicas.partitions():  # type: ignore[union-attr]
                assert partition.log is not None
                logs[partition.topic_partition].append((machine.node_id, partition.is_leader, partition.log))
                key = (bytes(partition.topic_id), partition.index)
                if partition.is_leader and partition.log.high_watermark < self._exposed.get(key, 0):
                    raise Violation(
                        f"{partition.topic_partition}: high watermark {partition.log.high_watermark} in the end, "
                        f"it was {self._exposed[key]}"
                    )
        for at in sorted(logs):
            self._agree(at, logs[at])
        found = {at: _contents(next(log for _, leads, log in logs[at] if leads)) for at in sorted(logs) if at.topic in OURS}
        self._acknowledged(found)
        self._transactions(found)

    def _agree(self, at: TopicPartition, replicas: list[tuple[int, bool, UnifiedLog]]) -> None:
        if at.topic.startswith("__"):
            return  # compacted by each replica on its own
        start = max(log.log_start_offset for _, _, log in replicas)
        end = min(log.high_watermark for _, _, log in replicas)
        first_id, _, first = replicas[0]
        expected = [*_batches(first, start, end)]
        for node_id, _, log in replicas[1:]:
            for one, other in zip(expected, _batches(log, start, end), strict=True):
                if one[1] != other[1]:
                    raise Violation(f"{at}: nodes {first_id} and {node_id} differ at offset {one[0].base_offset}")

    def _acknowledged(self, found: dict[TopicPartition, _Contents]) -> None:
        for at, contents in found.items():
            for value, count in contents.counts.items():
                if value not in self.history.tried:
                    raise Violation(f"{at} holds {value!r}, which nobody wrote")
                if count > 1:
                    raise Violation(f"{at} holds {value!r} {count} times")
        for acked in self.history.acked:
            contents = found[acked.at]
            there = contents.by_offset.get(acked.offset) if acked.offset >= 0 else acked.value
            if acked.value not in contents.counts or there != acked.value:
                raise Violation(
                    f"{acked.at}: {acked.value!r} was acknowledged at offset {acked.offset} ({acked.acked_s:.3f} s); "
                    f"there is {there!r}"
                )

    def _transactions(self, found: dict[TopicPartition, _Contents]) -> None:
        for number, written in self.history.committed.items():
            for at, value in written:
                if value not in found[at].committed:
                    raise Violation(f"transaction {number} is committed, and {at} has no {value!r} for its readers")
        for number, written in self.history.aborted.items():
            for at, value in written:
                if value in found[at].committed:
                    raise Violation(f"transaction {number} is aborted, and {at} shows {value!r} to its readers")

    def metadata(self) -> None:
        """The metadata log is the same everywhere, as far as it is committed."""
        logs = [(machine.node_id, machine.node.replica.member.log) for machine in self.cluster.machines]  # type: ignore[union-attr]
        start = max(log.log.log_start_offset for _, log in logs)
        end = min(log.log.high_watermark for _, log in logs)
        (first_id, first), *others = logs
        expected = [*_batches(first.log, start, end)]
        for node_id, log in others:
            for one, other in zip(expected, _batches(log.log, start, end), strict=True):
                if one[1] != other[1]:
                    raise Violation(f"metadata: nodes {first_id} and {node_id} differ at offset {one[0].base_offset}")

    def offsets(self, client: Client, wait: Callable[[Any], None]) -> None:
        """What groups have committed is not older than what was acknowledged."""
        for group in sorted({group for group, _ in self.history.offsets}):
            told: dict[TopicPartition, int] = {}

            async def ask(group: str = group, told: dict[TopicPartition, int] = told) -> None:
                async def attempt() -> bool:
                    told.update(await committed_offsets(client, group))
                    return True

                await client.refresh("shared")
                await client.until(attempt, lambda: False, lambda: None)

            task = client.loop.create_task(_patiently(client, ask))
            wait(task)
            task.result()
            for (owner, at), offset in self.history.offsets.items():
                if owner == group and told.get(at, -1) < offset:
                    raise Violation(f"group {group}: offset {offset} of {at} was acknowledged, and it has {told.get(at, -1)}")


def _where(partition: Partition, machine: Machine) -> str:
    return f"{partition.topic_partition} on node {machine.node_id}"


async def _patiently(client: Client, ask: Callable[[], Any]) -> None:
    while True:
        try:
            await ask()
            return
        except Later:
            await client.pause()


class _Contents:
    """A partition as its readers see it."""

    __slots__ = ("by_offset", "committed", "counts")

    def __init__(self) -> None:
        self.by_offset: dict[int, bytes] = {}
        self.counts: collections.Counter[bytes] = collections.Counter()
        self.committed: set[bytes] = set()


def _contents(log: UnifiedLog) -> _Contents:
    found = _Contents()
    open_values: dict[int, list[bytes]] = {}
    for header, raw in _batches(log, log.log_start_offset, log.high_watermark):
        for record in iter_records(raw):
            if header.is_control:
                marker = parse_end_txn_marker(record.key, record.value)
                values = open_values.pop(header.producer_id, [])
                if marker is not None and marker.commit:
                    found.committed.update(values)
                continue
            assert record.value is not None
            found.by_offset[record.offset] = record.value
            found.counts[record.value] += 1
            if header.is_transactional:
                open_values.setdefault(header.producer_id, []).append(record.value)
    return found


def _batches(log: UnifiedLog, start: int, end: int) -> Iterator[tuple[BatchHeader, bytes]]:
    """Whole batches between two offsets."""
    for segment in log.segments:
        data = segment.file.read(0, segment.size)
        for header in iter_headers(data):
            if header.base_offset >= start and header.base_offset + header.last_offset_delta < end:
                yield header, bytes(data[header.position : header.position + header.size])
