"""What the metadata quorum of whole nodes promises: the invariants of Apache Kafka's own Raft simulation, looked at all the time.

MonotonicEpoch: no node's epoch goes back (in the life of a process, and of what it has written down across them). SingleLeader:
one for each epoch. MonotonicHighWatermark: a process's never goes back. MajorityReachedHighWatermark: a leader says committed
when a majority of its voters has it on the disk. SnapshotAtLogStart: a log that does not begin at 0 begins at a snapshot that is
there. LeaderNeverLoadSnapshot: a leader never puts a snapshot in the place of its log. ConsistentCommittedData: what is
committed is the same everywhere, for ever.
"""

from __future__ import annotations

from typing import Any

from sim.clients import History
from tidelog.raft import quorum_state
from tidelog.raft.metadata_log import MetadataLog
from tidelog.records.batch import iter_headers
from tidelog.storage import reading
from tidelog.testing.simulation.cluster import SimCluster
from tidelog.testing.simulation.disk import PowerLoss
from tidelog.testing.simulation.loop import Agenda
from tidelog.testing.simulation.machines import Machine

LOOK_S = 0.02
READ_BYTES = 1 << 20


class QuorumChecks:
    """See the module. What does not hold is told to ``history.wrong``."""

    def __init__(self, cluster: SimCluster, history: History) -> None:
        self.cluster, self.history = cluster, history
        self.changes = 0
        """Of the active controller."""
        self.committed_end = 0
        self._leaders: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._processes: dict[int, tuple[int, int, int]] = {}
        """Node: which process it was, its epoch and its high watermark."""
        self._synced: dict[int, int] = {}
        """Node: how far its log is on the disk, as it was last seen."""
        self._committed: dict[int, bytes] = {}
        """Batches below a high watermark, by base offset."""
        self._agreed: dict[tuple[int, int], int] = {}
        """(Node, process): how far its log was compared."""
        self._voters: tuple[int, ...] = ()

    def watch(self, agenda: Agenda) -> None:
        """From now on."""

        def look() -> None:
            for machine in self.cluster.machines:
                log = _log(machine)
                if log is not None:
                    # Also of a process that has just ended: what is on its disk stays there.
                    self._synced[machine.node_id] = log.log.recovery_point
            for machine in self.cluster.machines:
                if machine.running and _log(machine) is not None:
                    self._look(machine)
            agenda.call_later(LOOK_S, look)

        look()

    def _wrong(self, what: str) -> None:
        self.history.wrong.append(what)

    def _look(self, machine: Machine) -> None:
        quorum: Any = machine.node.member.machine  # type: ignore[union-attr]
        node, epoch, high_watermark = machine.node_id, quorum.epoch, quorum.high_watermark
        process, former_epoch, former_watermark = self._processes.get(node, (0, 0, -1))
        if process != machine.starts:
            # What was not written down may be forgotten.
            former_epoch, former_watermark = self._epochs.get(node, 0), -1
        if epoch < former_epoch:
            self._wrong(f"node {node} goes back from quorum epoch {former_epoch} to {epoch}")
        if high_watermark < former_watermark:
            self._wrong(f"the quorum's high watermark of node {node} goes back from {former_watermark} to {high_watermark}")
        self._processes[node] = machine.starts, epoch, high_watermark
        if epoch > self._epochs.get(node, 0) and quorum.quorum.log.shape.end_offset == quorum.quorum.log.shape.synced:
            self._epochs[node] = max(self._epochs.get(node, 0), _written_epoch(machine))
        if quorum.leader_id >= 0:
            known = self._leaders.setdefault(epoch, quorum.leader_id)
            self.changes = len(self._leaders) - 1
            if known != quorum.leader_id:
                self._wrong(f"quorum epoch {epoch} has leaders {known} and {quorum.leader_id}")
        if quorum.is_leader and quorum.quorum.log.installing:
            self._wrong(f"node {node} leads the quorum and loads a snapshot")
        if quorum.is_leader:
            self._led(machine, quorum)
        self._log_of(machine, high_watermark)

    def _led(self, machine: Machine, quorum: Any) -> None:
        voters = quorum.voters
        if voters.ids != self._voters:
            self.history.rare["voter sets"] += bool(self._voters)
            self._voters = voters.ids
        if quorum.high_watermark <= self.committed_end:
            return
        self.committed_end = quorum.high_watermark
        have = [each for each in voters.ids if self._synced.get(each, 0) >= quorum.high_watermark]
        if len(have) < voters.majority:
            self._wrong(
                f"node {machine.node_id} takes {quorum.high_watermark} for committed, and of the voters {voters.ids} "
                f"{have} have it"
            )

    def _log_of(self, machine: Machine, high_watermark: int) -> None:
        held = _log(machine)
        assert held is not None
        if held.log.failure is not None:
            return  # its disk has failed: the node is about to end
        start = held.log.log_start_offset
        if start != 0 and all(each.offset != start for each in held.snapshots):
            self._wrong(f"the metadata log of node {machine.node_id} begins at {start}, and its snapshots are {held.snapshots}")
        key = (machine.node_id, machine.starts)
        at = max(self._agreed.get(key, 0), start)
        end = min(high_watermark, held.end_offset)
        while at < end:
            found = reading.read(held.log, at, READ_BYTES, upto=end, min_one=True)
            if found.slice is None:
                return
            data = found.slice.read()
            for header in iter_headers(data):
                batch = bytes(data[header.position : header.position + header.size])
                known = self._committed.setdefault(header.base_offset, batch)
                if known != batch:
                    self._wrong(f"node {machine.node_id} has other metadata at offset {header.base_offset}")
                at = header.next_offset
            self._agreed[key] = at


def _written_epoch(machine: Machine) -> int:
    """Of the quorum-state file: what the machine has decided may fail to get there, on a full disk."""
    held = _log(machine)
    assert held is not None
    try:
        state = quorum_state.load(machine.disk, held.dir)
    except (OSError, PowerLoss):
        return 0
    return 0 if state is None else state.leader_epoch


def _log(machine: Machine) -> MetadataLog | None:
    """Of the last process that has opened it."""
    member = None if machine.node is None else machine.node.member
    return None if member is None else member.log
