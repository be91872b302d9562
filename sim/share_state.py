"""The simulated ``__share_group_state``: one replicated log, and the shard of its leader.

Records are committed a while after they were appended, if the leader still leads then. The next leader keeps what is
committed and as much of the rest as chance gives it. A leader that does not know of its successor goes on appending to its
own copy, and none of that is ever committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tidelog.coordinator.shard import Waiting
from tidelog.coordinator.share.coordinator import ShareCoordinator
from tidelog.coordinator.share.settings import ShareCoordinatorSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Outcome, Token
from tidelog.records.builder import RecordData
from tidelog.records.record import Record

if TYPE_CHECKING:
    from sim.share_broker import SimShareBroker
    from sim.share_world import ShareWorld

PATIENCE_MS = 5_000
NEVER = 1 << 62


class Entry(NamedTuple):
    offset: int
    data: RecordData


class StateLog:
    """What is in the log of the true leader. ``committed``: the end of what is safe."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.end = 0
        self.committed = 0
        self.log_start = 0

    def cut(self, end: int) -> None:
        """A new leader: what is from ``end`` on is lost."""
        self.entries = [each for each in self.entries if each.offset < end]
        self.end = end

    def prune(self, offset: int) -> None:
        self.log_start = offset
        self.entries = [each for each in self.entries if each.offset >= offset]


class SimShard:
    """The coordinator at one broker, in one leadership."""

    def __init__(self, broker: SimShareBroker, epoch: int, settings: ShareCoordinatorSettings) -> None:
        self.broker = broker
        self.world: ShareWorld = broker.world
        self.epoch = epoch
        self.machine: ShareCoordinator | None = None
        self.stopped = False
        self._settings = settings
        self._last_token = 0
        self._waiting: dict[Token, Waiting] = {}
        self._pending: deque[tuple[int, Outcome]] = deque()
        """The last offset of an outcome, and the outcome."""
        self._own_end = 0

    def load(self) -> None:
        """Replays the log."""
        if self.stopped:
            return
        world = self.world
        machine = ShareCoordinator(self._settings, world.now, lambda: self.broker.image)
        for offset, one in world.state.entries:
            machine.replay_stored(Record(offset, one.timestamp, one.key, one.value), world.now)
        machine.loaded(world.now)
        machine.check()
        self.machine, self._own_end = machine, world.state.end
        if self._own_end > world.state.committed:
            self._pending.append((self._own_end - 1, Outcome()))
            self._commit_later(self._own_end)
        self._expire_later()

    def _expire_later(self) -> None:
        machine = self.machine
        if machine is not None:
            self.broker.runtime.later(max(1, machine.next_deadline() - self.world.now), self._expire)

    def _expire(self) -> None:
        if self.machine is not None:
            if self.leads:
                outcome = self.machine.expire(self.world.now)
                self.world.note("cold snapshot" if outcome.records else "cold check")
                self._run(outcome)
            self._expire_later()

    def prune(self) -> None:
        """Deletes what newer snapshots have replaced."""
        state = self.world.state
        if self.machine is not None and self.leads:
            offset = self.machine.prunable_offset(state.committed)
            if offset is not None and offset > state.log_start:
                state.prune(offset)
                self.world.note("pruned")

    @property
    def leads(self) -> bool:
        """Whether it is the true leader, whatever it believes."""
        return not self.stopped and self.world.state_leader == (self.broker.id, self.epoch)

    def stop(self) -> None:
        self.stopped = True
        self.machine = None
        self._pending.clear()
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            one.error = ErrorCode.NOT_COORDINATOR
            one.finish()

    def ask(self, call: Callable[[ShareCoordinator, Token, int], Outcome]) -> tuple[Token, Waiting]:
        assert self.machine is not None
        self._last_token += 1
        token = Token(self._last_token)
        waiting = self._waiting[token] = Waiting()
        self._run(call(self.machine, token, self.world.now))
        return token, waiting

    def abandon(self, token: Token) -> None:
        waiting = self._waiting.pop(token, None)
        if waiting is not None:
            waiting.on_done = None
            waiting.finish()

    def _run(self, outcome: Outcome) -> None:
        machine, world = self.machine, self.world
        assert machine is not None
        last = -1
        if outcome.records:
            machine.appending(self._own_end)
            for record in outcome.records:
                data = machine.to_record(record, world.now)
                if self.leads:
                    world.state.entries.append(Entry(self._own_end, data))
                    world.state.end = self._own_end + 1
                machine.replay(record, world.now)
                self._own_end += 1
            machine.check()
            last = self._own_end - 1
            self._commit_later(self._own_end)
        if self._pending or last >= world.state.committed or (last >= 0 and not self.leads):
            self._pending.append((last, outcome))
            tokens = [reply.token for reply in outcome.replies]
            self.broker.runtime.later(PATIENCE_MS, lambda: self._give_up(tokens))
        else:
            self._release(outcome)

    def _give_up(self, tokens: list[Token]) -> None:
        for token in tokens:
            waiting = self._waiting.pop(token, None)
            if waiting is not None:
                waiting.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
                waiting.finish()

    def _commit_later(self, end: int) -> None:
        self.world.at(self.world.replication_ms(), lambda: self._commit(end))

    def _commit(self, end: int) -> None:
        if self.leads:
            self.world.commit(end)
            if self.machine is not None:
                self.world.ledger.compare(self.machine)
            while self._pending and self._pending[0][0] < self.world.state.committed:
                self._release(self._pending.popleft()[1])

    def _release(self, outcome: Outcome) -> None:
        for reply in outcome.replies:
            waiting = self._waiting.pop(reply.token, None)
            if waiting is not None:
                waiting.response = reply.response
                waiting.finish()


class SimShards:
    """As ``coordinator.shards.Shards``, for one partition."""

    def __init__(self, broker: SimShareBroker, settings: ShareCoordinatorSettings) -> None:
        self._broker = broker
        self._settings = settings
        self.shard: SimShard | None = None

    def follow(self) -> None:
        """The broker has read new metadata."""
        leader, epoch = self._broker.known_state_leader
        if self.shard is not None and (leader != self._broker.id or self.shard.epoch != epoch):
            self.shard.stop()
            self.shard = None
        if leader == self._broker.id and self.shard is None:
            self.shard = SimShard(self._broker, epoch, self._settings)
            self._broker.runtime.later(self._broker.world.rng.randint(1, 300), self.shard.load)

    def find(self, key: str, *, writes: bool = True) -> SimShard | ErrorCode:
        if self.shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.shard.machine is None else self.shard

    def ask(self, shard: SimShard, call: Callable[[ShareCoordinator, Token, int], Outcome]) -> tuple[Token, Waiting]:
        return shard.ask(call)
