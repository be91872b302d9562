"""What the simulated share groups have promised, record by record, and the checks that each step has to pass.

The machines of the shipped code are watched from outside: each acquisition, acknowledgement, release, timeout and
completion of a ``SharePartition`` passes through here, and so does each record of share state when it is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from tidelog.broker.shares.hosted_share import Phase
from tidelog.broker.shares.share_partitions import SharePartitions
from tidelog.coordinator.share.coordinator import ShareCoordinator
from tidelog.coordinator.share.records import Snapshot, decode
from tidelog.model.errors import ErrorCode
from tidelog.replication.share.record_state import AckType, AcquiredRange, RecordState, StateBatch
from tidelog.replication.share.share_partition import Change, SharePartition
from tidelog.testing.simulation.patching import Patch

if TYPE_CHECKING:
    from sim.share_world import ShareWorld

NEVER = 1 << 62
Hold = tuple[str, int]
"""The member, and when its lock times out."""


class Attempt:
    """One request with acknowledgements. ``finished``: offsets that it finished, as far as the machine has agreed, with the
    leader's epoch."""

    def __init__(self, group: str, member: str, generation: int) -> None:
        self.group = group
        self.member = member
        self.generation = generation
        self.finished: dict[int, int] = {}
        self.successor = -1
        """The epoch of the newest leader that had loaded the state when the machine was asked."""


class GroupLedger:
    """One group's records."""

    def __init__(self) -> None:
        self.newest_leader = -1
        """The epoch of the newest leader that has loaded the state."""
        self.generation = 0
        """Rises when the offsets are reset."""
        self.first = 0
        """The group has to finish the records from here on."""
        self.acknowledged: dict[int, int] = {}
        """Reported to a member as durably finished; the epoch of the leader that did so. A former leader that does not know of
        its successor may still deliver what that one has finished, as in Apache Kafka."""
        self.tried: set[int] = set()
        """In an acknowledgement whose outcome may be unknown."""
        self.worn_out: set[int] = set()
        """Delivered as often as a record may be."""
        self.delivered: set[int] = set()
        self.stored_start = -1
        self.stored: dict[int, tuple[RecordState, int]] = {}
        """Committed state and count by offset."""

    def reset(self, start: int) -> None:
        self.generation += 1
        self.first = max(start, 0)
        self.stored_start = start
        for each in (self.tried, self.worn_out, self.delivered):
            each.clear()
        self.acknowledged.clear()
        self.stored.clear()

    def is_durable(self, offset: int) -> bool:
        """Whether the state at the coordinator finishes it."""
        return offset < self.stored_start or self.stored.get(offset, (RecordState.AVAILABLE, 0))[0].is_terminal


class Watched(NamedTuple):
    """A machine under watch: its group and generation, the counts it was loaded with, and what is held."""

    group: str
    leader_epoch: int
    generation: int
    loaded: dict[int, int]
    deliveries: dict[int, int]
    held: dict[int, Hold]
    undone: dict[int, dict[int, Hold]]
    """By change: what is held again if it fails."""


class Ledger:
    def __init__(self, world: ShareWorld) -> None:
        self.world = world
        self.groups: dict[str, GroupLedger] = {}
        self._machines: dict[int, tuple[SharePartition, Watched]] = {}
        self._loaded: dict[int, tuple[StateBatch, ...]] = {}
        self._serving: Attempt | None = None

    # -- requests with acknowledgements ---------------------------------------------------------------------------------------

    def attempt(self, group: str, member: str, acks: Sequence[tuple[int, int, list[int]]]) -> Attempt:
        ledger = self.groups[group]
        for first, last, _ in acks:
            ledger.tried.update(range(first, last + 1))
        return Attempt(group, member, ledger.generation)

    @contextmanager
    def serving(self, attempt: Attempt) -> Iterator[None]:
        """The machine is asked now."""
        self._serving = attempt
        try:
            yield
        finally:
            self._serving = None

    def answered(self, attempt: Attempt, answer: Any) -> None:
        """The broker has answered the request."""
        ledger = self.groups[attempt.group]
        errors = {
            getattr(part, "acknowledge_error_code", 0) if hasattr(part, "acknowledge_error_code") else part.error_code
            for topic in answer.responses
            for part in topic.partitions
        }
        if answer.error_code or errors != {0} or attempt.generation != ledger.generation:
            return
        for offset, epoch in attempt.finished.items():
            self.world.note("acknowledged")
            if attempt.successor > epoch:
                self.world.violated(
                    f"{attempt.group}: leader {epoch} finishes {offset}, and leader {attempt.successor} has taken over"
                )
            if not ledger.is_durable(offset):
                self.world.violated(f"{attempt.group}: {offset} is acknowledged and its state is not durable")
            ledger.acknowledged[offset] = epoch

    # -- what is committed ----------------------------------------------------------------------------------------------------

    def committed(self, key: bytes, value: bytes | None) -> None:
        """A record of share state is safe now."""
        record = decode(key, value)
        assert record is not None and record.change is not None
        change = record.change
        ledger = self.groups[record.key.group_id]
        if isinstance(change, Snapshot):
            if change.state_epoch > self.world.state_epochs.get(record.key.group_id, -1):
                self.world.state_epochs[record.key.group_id] = change.state_epoch
                ledger.reset(change.start_offset)
                return
            kept = {o: found for o, found in ledger.stored.items() if o >= change.start_offset}
            ledger.stored.clear()
            self._merge(ledger, change.batches)
            # A delivery more may have taken the place of what no member heard of.
            now = {o: (count, state) for o, (state, count) in ledger.stored.items()}
            lost = [o for o, (state, count) in kept.items() if state.is_terminal and now.get(o, (0, 0)) < (count, state)]
            if lost and change.start_offset >= 0:
                self.world.violated(f"{record.key.group_id}: a snapshot has lost the states of {lost}")
        else:
            self._merge(ledger, change.batches)
        ledger.stored_start = max(ledger.stored_start, change.start_offset)
        for offset in [each for each in ledger.stored if each < ledger.stored_start]:
            del ledger.stored[offset]

    @staticmethod
    def _merge(ledger: GroupLedger, batches: Sequence[StateBatch]) -> None:
        for batch in batches:
            for offset in range(batch.first, batch.last + 1):
                former = ledger.stored.get(offset)
                new = batch.state, batch.delivery_count
                if former is None or (new[1], new[0]) > (former[1], former[0]):
                    ledger.stored[offset] = new

    # -- machines -------------------------------------------------------------------------------------------------------------

    def watch(self, machine: SharePartition) -> Watched:
        found = self._machines.get(id(machine))
        if found is None:
            hosted = self.world.owner_of(machine)
            group = hosted.key.group_id
            loaded = {}
            for batch in self._loaded.get(id(machine), ()):
                loaded.update(dict.fromkeys(range(batch.first, batch.last + 1), batch.delivery_count))
            ledger = self.groups[group]
            ledger.newest_leader = max(ledger.newest_leader, hosted.leader_epoch)
            watched = Watched(group, hosted.leader_epoch, self.groups[group].generation, loaded, {}, {}, {})
            found = self._machines[id(machine)] = machine, watched
        return found[1]

    def _deliver(self, machine: SharePartition, member: str, got: list[AcquiredRange], limit: int) -> None:
        watched, world = self.watch(machine), self.world
        ledger = self.groups[watched.group]
        current = watched.generation == ledger.generation
        until_ms = world.now + world.lock_ms(watched.group)
        aborted = world.aborted(watched.group)
        for one in got:
            for offset in range(one.first, one.last + 1):
                world.note("delivered")
                name = f"{watched.group}: {offset}, delivered to {member} with count {one.delivery_count},"
                count = watched.loaded.get(offset, 0) + watched.deliveries.get(offset, 0) + 1
                watched.deliveries[offset] = watched.deliveries.get(offset, 0) + 1
                if one.delivery_count != count:
                    world.violated(f"{name} has been delivered {count} times")
                if count > limit:
                    world.violated(f"{name} may be delivered {limit} times")
                if offset in aborted:
                    world.violated(f"{name} was aborted")
                holder, deadline_ms = watched.held.get(offset, ("", 0))
                if holder and deadline_ms > world.now:
                    world.violated(f"{name} is held by {holder} for another {deadline_ms - world.now} ms")
                watched.held[offset] = member, until_ms
                if current:
                    if ledger.acknowledged.get(offset, NEVER) <= watched.leader_epoch:
                        world.violated(f"{name} has been acknowledged durably")
                    ledger.delivered.add(offset)
                    if count >= limit:
                        ledger.worn_out.add(offset)
                if count > 1:
                    world.note("delivered again")
                if count == limit:
                    world.note("last delivery")

    def _taken(self, machine: SharePartition, change: Change, member: str) -> None:
        """Records leave a member by its own wish, until the change fails."""
        watched = self.watch(machine)
        saved = watched.undone[id(change.mark)] = {}
        for batch in change.batches:
            for offset in range(batch.first, batch.last + 1):
                hold = watched.held.pop(offset, None)
                if hold is None or hold[0] != member:
                    self.world.violated(f"{watched.group}: {offset} is acknowledged by {member}, and held by {hold}")
                else:
                    saved[offset] = hold
                if self._serving is not None and batch.state.is_terminal:
                    self._serving.finished[offset] = watched.leader_epoch
                    self._serving.successor = self.groups[watched.group].newest_leader

    def _check_undone(self, machine: SharePartition, watched: Watched, offset: int, hold: Hold, now_ms: int) -> None:
        """The records of a change that failed are not finished, but for those that may not be delivered again."""
        count = watched.loaded.get(offset, 0) + watched.deliveries.get(offset, 0)
        if hold[1] <= now_ms and count >= machine._limits().delivery_count:
            return
        if self.world.log.log_start_offset <= offset < machine.start_offset:
            self.world.violated(f"{watched.group}: the start has passed {offset}, whose change has failed")
        for span in machine._spans.within(offset, offset):
            if span.state.is_terminal:
                self.world.violated(f"{watched.group}: {offset} is finished, and its change has failed")

    def compare(self, machine: ShareCoordinator) -> None:
        """The coordinator has all that is committed."""
        for key, stored in machine._shares.items():
            ledger = self.groups[key.group_id]
            if stored.state_epoch != self.world.state_epochs.get(key.group_id):
                continue
            if stored.start_offset < ledger.stored_start:
                self.world.violated(f"{key.group_id}: the start goes back from {ledger.stored_start} to {stored.start_offset}")
            terminal = {o for batch in stored.batches if batch.state.is_terminal for o in range(batch.first, batch.last + 1)}
            for offset, (state, _) in ledger.stored.items():
                if state.is_terminal and stored.start_offset <= offset and offset not in terminal:
                    self.world.violated(f"{key.group_id}: the coordinator has lost that {offset} is finished")

    def patches(self) -> list[Patch]:
        """Watches every machine. What is shipped, or planted, runs inside."""
        make, acquire, acknowledge = SharePartition.__init__, SharePartition.acquire, SharePartition.acknowledge
        release, complete, expire = SharePartition.release, SharePartition.complete, SharePartition.expire
        lose, world = SharePartitions.lost, self.world

        def made(machine: SharePartition, start_offset: int, batches: Any, limits: Any) -> None:
            kept = tuple(batches)
            make(machine, start_offset, kept, limits)
            self._loaded[id(machine)] = kept

        def acquired(machine: SharePartition, offset: int, batches: Any, want: Any, now_ms: int, aborted: Any = ()) -> Any:
            limits, before, room_taken = machine._limits(), machine.end_offset, machine.in_flight
            got = acquire(machine, offset, batches, want, now_ms, aborted)
            machine.check()
            new = sum(one.last - max(one.first, before + 1) + 1 for one in got if one.last > before)
            # Released records that were compacted away are given up first.
            room = max(0, limits.max_locks - max(0, before - machine.start_offset + 1))
            # Whole batches, with what was compacted away before them.
            ends = [last for _, last in batches]
            stride = max((after - last for last, after in pairwise([batches[0][0] - 1, *ends])), default=0) if batches else 0
            if new > room + (stride if room else 0):
                world.violated(f"{new} new records with {room_taken} of {limits.max_locks} in flight")
            world.note("at the limit" if room_taken >= limits.max_locks else "below the limit")
            self._deliver(machine, want.member, got, limits.delivery_count)
            return got

        def acknowledged(machine: SharePartition, member: str, acks: Any, now_ms: int) -> Any:
            change = acknowledge(machine, member, acks, now_ms)
            machine.check()
            if isinstance(change, ErrorCode):
                world.note(f"acknowledgement {change.name}")
                return change
            self._taken(machine, change, member)
            held, until_ms = self.watch(machine).held, now_ms + world.lock_ms(self.watch(machine).group)
            for ack in acks:
                for at in range(ack.first, ack.last + 1):
                    if ack.types[0 if len(ack.types) == 1 else at - ack.first] == AckType.RENEW and at in held:
                        world.note("renewed")
                        held[at] = held[at][0], until_ms
            return change

        def released(machine: SharePartition, member: str) -> Any:
            change = release(machine, member)
            if change is not None:
                self._taken(machine, change, member)
            return change

        def completed(machine: SharePartition, change: Change, now_ms: int, *, persisted: bool) -> None:
            complete(machine, change, now_ms, persisted=persisted)
            machine.check()
            watched = self.watch(machine)
            saved = watched.undone.pop(id(change.mark), {})
            if not persisted:
                world.note("rolled back")
                for offset, hold in saved.items():
                    watched.held[offset] = hold
                    self._check_undone(machine, watched, offset, hold, now_ms)

        def expired(machine: SharePartition, now_ms: int) -> Any:
            change = expire(machine, now_ms)
            machine.check()
            for batch in change.batches if change is not None else ():
                for offset in range(batch.first, batch.last + 1):
                    world.note("lock timed out")
                    hold = self.watch(machine).held.pop(offset, None)
                    if hold is not None and hold[1] > now_ms:
                        world.violated(f"the lock of {offset} times out {hold[1] - now_ms} ms early")
            return change

        def lost(shares: SharePartitions, owner: object) -> None:
            gone = {key for key, session in shares.sessions._sessions.items() if session.owner is owner}
            lose(shares, owner)
            for each in shares:
                for span in each.machine._spans if each.phase is Phase.ACTIVE else ():
                    if (each.key.group_id, span.member) in gone:
                        world.violated(f"{each.key.group_id}: {span.first} is held by {span.member}, whose connection is gone")

        return [
            (SharePartitions, "lost", lost),
            (SharePartition, "__init__", made),
            (SharePartition, "acquire", acquired),
            (SharePartition, "acknowledge", acknowledged),
            (SharePartition, "release", released),
            (SharePartition, "complete", completed),
            (SharePartition, "expire", expired),
        ]
