"""One simulated replica of a metadata quorum: its machine, its disk, and who does what the machine says.

It does the effects in order, as the real runner has to: what waits for the disk holds up what comes after it. Its clock runs at
its own speed. A crash loses the machine, the queue, and what was not synced.
"""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING, Any

from sim.raft_disk import Batch, Disk, batches_of, decode_snapshot, encode_snapshot
from tidelog.model.machine import Token
from tidelog.raft.effects import (
    AppendControl,
    AppendFetched,
    BeginSnapshot,
    Effect,
    ForgetLoss,
    HighWatermarkMoved,
    InstallSnapshot,
    LeaderChanged,
    Persist,
    Reply,
    ReplyRecords,
    ReplySnapshotPart,
    Send,
    StoreSnapshotPart,
    Truncate,
)
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.machine import RaftMachine
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import ControlType, control_batch, parse_voters

if TYPE_CHECKING:
    from sim.raft_world import World

DIGEST = 8


class SimVoter:
    """``clock``: (ms per ms of the world, offset in ms)."""

    def __init__(self, world: World, config: RaftConfig, disk: Disk, clock: tuple[float, int]) -> None:
        self.world = world
        self.config = config
        self.key: ReplicaKey = config.key
        self.id = config.key.id
        self.disk = disk
        self.clock = clock
        self.rng = random.Random(world.rng.getrandbits(64))
        self.alive = False
        self.paused = False
        self.life = 0
        self.machine: RaftMachine
        self.queue: deque[Effect] = deque()
        self.busy = False
        self.syncing = False
        self.sync_again = False
        self.generation = 0
        self.high_watermark = -1
        self.last_epoch = 0
        self.promised_epoch = 0
        """Of the last quorum-state that was synced: what a restart may not go back from."""
        self.deferred: list[Any] = []
        self.pending: list[Batch] = []
        self.known_voters: set[ReplicaKey] = set()
        self.known_voters_offset = -1
        self.snapshot_every = world.rng.choice((0, 20, 40))
        self.since_snapshot = 0
        self._armed = -1

    @property
    def now(self) -> int:
        return int(self.world.now * self.clock[0]) + self.clock[1]

    # Life and death

    def start(self) -> None:
        """Load the disk, and go on."""
        assert not self.alive
        self.alive, self.paused = True, False
        shape, sets = self.disk.shape(), self.disk.voter_sets()
        lost_end = NOTHING_LOST if "lost end forgotten" in self.world.bugs else self.disk.lost_end
        self.machine = RaftMachine(
            self.config,
            shape=shape,
            sets=sets,
            state=self.disk.state,
            rng=self.rng,
            now_ms=self.now,
            lost_end=lost_end,
            witnesses=self.disk.witnesses,
        )
        self.world.checkers.epoch(self, self.promised_epoch, self.machine.epoch)
        self.last_epoch = self.machine.epoch
        self.generation = self.machine.quorum.log.shape.generation
        self.known_voters, self.known_voters_offset = set(sets.voters.keys), sets.offset
        self.high_watermark = -1
        self.pending = []
        self.do(self.machine.tick(self.now))

    def crash(self) -> None:
        """The power goes."""
        self.alive, self.paused = False, False
        self.life += 1
        self.busy = self.syncing = self.sync_again = False
        self.queue.clear()
        self.deferred.clear()
        self._armed = -1
        self.disk.power_loss(self.world.rng)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        if self.alive and self.paused:
            self.paused = False
            waiting, self.deferred = self.deferred, []
            for each in waiting:
                each()

    def later(self, delay_ms: int, what: Any) -> None:
        """``what()`` then, unless this life has ended."""
        life = self.life

        def due() -> None:
            if self.life == life and self.alive:
                if self.paused:
                    self.deferred.append(due)
                else:
                    what()

        self.world.after(delay_ms, due)

    def give(self, what: Any) -> None:
        """An event for the machine: ``what()`` gives its effects."""
        if self.alive and not self.paused:
            self.do(what())
        elif self.alive:
            self.deferred.append(lambda: self.do(what()))

    def _arm(self) -> None:
        deadline = self.machine.deadline_ms
        if deadline > 1 << 60:
            return
        at = max(self.world.now + 1, int((deadline - self.clock[1]) / self.clock[0]) + 1)
        if self.world.now < self._armed <= at:
            return
        self._armed = at

        def ring() -> None:
            if self._armed <= self.world.now:
                self._armed = -1
            self.give(lambda: self.machine.tick(self.now))

        self.later(at - self.world.now, ring)

    # Effects

    def do(self, effects: list[Effect]) -> None:
        """Behind what is still to be done."""
        self.queue.extend(effects)
        self.machine.check()
        self.world.checkers.epoch(self, self.last_epoch, self.machine.epoch)
        self.last_epoch = self.machine.epoch
        if self.machine.is_leader:
            self.world.checkers.still_leads(self, self.machine.quorum.leading().deadline_ms(), self.now)
        self._run()
        if self.alive:
            self._arm()

    def _run(self) -> None:
        while self.queue and not self.busy:
            self._one(self.queue.popleft())

    def _one(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.world.send(self, effect)
        elif isinstance(effect, Reply):
            self._answer(effect.token, effect.response)
        elif isinstance(effect, ReplyRecords):
            partition = effect.response.responses[0].partitions[0]
            partition.records = self.disk.read(effect.offset, effect.max_bytes)
            self._answer(effect.token, effect.response)
        elif isinstance(effect, ReplySnapshotPart):
            content = self.disk.snapshots.get(effect.snapshot_id, b"")
            piece = content[effect.position : effect.position + min(effect.max_bytes, 300)]
            effect.response.topics[0].partitions[0].unaligned_records = piece
            self._answer(effect.token, effect.response)
        elif isinstance(effect, HighWatermarkMoved):
            self._committed(effect.offset)
        elif isinstance(effect, LeaderChanged):
            self.pending = []
            if effect.epoch_start >= 0:
                self.world.checkers.leads(self, effect.epoch)
                self.world.count("leader elected")
        else:
            self._to_disk(effect)

    def _to_disk(self, effect: Effect) -> None:
        if isinstance(effect, Persist):
            self._persist(effect)
        elif isinstance(effect, AppendControl):
            data = control_batch(effect.records, timestamp_ms=self.now, base_offset=effect.base_offset, leader_epoch=effect.epoch)
            self._watch_voters(effect)
            self.disk.append([Batch(effect.base_offset, effect.base_offset + len(effect.records), effect.epoch, bytes(data))])
            self._sync(effect.generation)
        elif isinstance(effect, AppendFetched):
            self.disk.append(batches_of(effect.data))
            self._sync(effect.generation)
        elif isinstance(effect, Truncate):
            self.world.count("log truncated")
            self.disk.truncate(effect.offset)
            self._sync(effect.generation)
        elif isinstance(effect, ForgetLoss):
            self.world.count("loss forgotten")
            self.world.checkers.forgets_loss(self)
            self.disk.lost_end, self.disk.witnesses, self.disk.lost = NOTHING_LOST, (), []
        elif isinstance(effect, BeginSnapshot):
            self.disk.parts[effect.snapshot_id] = bytearray()
        elif isinstance(effect, StoreSnapshotPart):
            part = self.disk.parts[effect.snapshot_id]
            assert len(part) == effect.position
            part += effect.data
        else:
            assert isinstance(effect, InstallSnapshot)
            self._install(effect)

    def _persist(self, effect: Persist) -> None:
        self.busy = True
        self.disk.state_under_way = effect.state

        def done() -> None:
            if "vote not synced" not in self.world.bugs:
                self.disk.state = effect.state
            self.disk.state_under_way = None
            self.promised_epoch = effect.state.leader_epoch
            self.busy = False
            self._run()

        self.later(self.world.disk_delay(), done)

    def _sync(self, generation: int) -> None:
        self.generation = generation
        if "log not synced" in self.world.bugs:
            end = self.disk.end
            self.later(0, lambda: self.give(lambda: self.machine.log_synced(end, generation, self.now)))
            return
        if self.syncing:
            self.sync_again = True
            return
        self.syncing, self.sync_again = True, False
        captured, end = list(self.disk.log), self.disk.end

        def done() -> None:
            self.syncing = False
            if generation == self.generation:
                self.disk.safe = captured
            again = self.sync_again
            self.give(lambda: self.machine.log_synced(end, generation, self.now))
            if again:
                self._sync(self.generation)

        self.later(self.world.disk_delay(), done)

    def _install(self, effect: InstallSnapshot) -> None:
        self.busy = True
        self.world.checkers.loads_snapshot(self)
        self.world.count("snapshot loaded")

        def done() -> None:
            content = bytes(self.disk.parts.pop(effect.snapshot_id))
            assert len(content) == effect.size
            level, voters, _ = decode_snapshot(content)
            self.disk.start_at(effect.snapshot_id, content)
            self.busy = False
            self.known_voters, self.known_voters_offset = set(voters.keys), effect.snapshot_id.offset - 1
            self.give(lambda: self.machine.snapshot_installed(effect.snapshot_id, effect.size, level, voters, self.now))
            self.generation = self.machine.quorum.log.shape.generation
            self._run()

        self.later(self.world.disk_delay() * 3, done)

    def _watch_voters(self, effect: AppendControl) -> None:
        for offset, (kind, value) in enumerate(effect.records, effect.base_offset):
            if kind == ControlType.KRAFT_VOTERS:
                after = set(VoterSet.of(parse_voters(value)).keys)
                before = set(self._voters_before(effect.base_offset))
                if before and after != before:
                    self.world.count("voters changed")
                    self.world.checkers.one_voter_at_a_time(before, after)
                    self.world.checkers.voter_change_was_committed(self, self.known_voters_offset)
                self.known_voters_offset = offset

    def _voters_before(self, offset: int) -> tuple[ReplicaKey, ...]:
        sets = self.disk.voter_sets()
        self.known_voters_offset = sets.offset
        return sets.voters.keys

    def _committed(self, offset: int) -> None:
        self.world.checkers.high_watermark(self, self.high_watermark, offset)
        moved = offset - max(self.high_watermark, 0)
        self.high_watermark = offset
        while self.pending and self.pending[0].next_offset <= offset:
            batch = self.pending.pop(0)
            self.world.checkers.acknowledged[batch.base_offset] = batch.data
            self.world.acknowledged += 1
        self.since_snapshot += moved
        if self.snapshot_every and self.since_snapshot >= self.snapshot_every:
            self.since_snapshot = 0
            self._write_snapshot(offset)

    def _write_snapshot(self, offset: int) -> None:
        below = [batch for batch in self.disk.log if batch.next_offset <= offset]
        if not below:
            return
        snapshot_id = SnapshotId(below[-1].next_offset, below[-1].epoch)
        if snapshot_id in self.disk.snapshots:
            return
        sets = self.disk.voter_sets()
        voters, level = sets.at(snapshot_id.offset)
        content = encode_snapshot(level, voters, [batch.data[-DIGEST:] for batch in below])
        self.disk.snapshots[snapshot_id] = content
        self.machine.snapshot_written(snapshot_id, len(content))
        if self.world.rng.random() < 0.5 and set(self.disk.safe) >= set(below):
            kept = [each for each in self.disk.snapshots if each >= snapshot_id]
            self.disk.clean(snapshot_id)
            self.machine.log_cleaned(snapshot_id.offset, kept)
            self.world.count("log cleaned")
        self.world.checkers.log_begins_at_snapshot(self)

    def _answer(self, token: Token, response: Any) -> None:
        name = type(response).__name__
        if name == "VoteResponse" and response.topics and response.topics[0].partitions[0].vote_granted:
            self._watch_vote(token, response)
        self.world.answer(self, token, response)

    def _watch_vote(self, token: Token, response: Any) -> None:
        asked = self.world.asked(token)
        if asked is None:
            return
        partition = asked.topics[0].partitions[0]
        self.world.checkers.voted_for_end(self, LogEnd(partition.last_offset_epoch, partition.last_offset))
        if not partition.pre_vote:
            self.world.checkers.voted(
                self, partition.replica_epoch, ReplicaKey(partition.replica_id, partition.replica_directory_id)
            )
            return
        state = self.machine.quorum.state
        heard = isinstance(state, FollowerState) and state.has_fetched and self.now < state.deadline_ms
        self.world.checkers.pre_vote_granted(self, leader_heard=heard)

    # The controller's part

    def append(self, value: bytes) -> bool:
        """A record of a client, if this replica leads and may write."""
        if not self.alive or self.paused or self.queue or self.busy or not self.machine.is_leader:
            return False
        data = bytes(build_batch([RecordData(None, value, self.now)], base_offset=self.disk.end, leader_epoch=self.machine.epoch))
        batch = Batch(self.disk.end, self.disk.end + 1, self.machine.epoch, data)
        self.disk.append([batch])
        self.pending.append(batch)
        self.do(self.machine.appended(batch.next_offset, self.now))
        self._sync(self.generation)
        return True
