"""Simulated members of share groups: they fetch, process, acknowledge, forget, crash, and come back on another connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.share_broker import TOPIC_ID, Connection
from tidelog.broker.shares.share_sessions import CLOSE, OPEN
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import share_acknowledge as acknowledging
from tidelog.protocol.messages import share_fetch as fetching

if TYPE_CHECKING:
    from sim.share_world import ShareWorld

LARGE_MIN_BYTES = 300
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class SimMember:
    def __init__(self, world: ShareWorld, group: str, number: int) -> None:
        self.world = world
        self.group = group
        self.number = number
        self.lives = 0
        self.member_id = f"m{number}"
        self.epoch = OPEN
        self.connection: Connection | None = None
        self.held: dict[int, int] = {}
        """Offset -> when it was received, of records that are not acknowledged."""
        self.gone = False
        """Whether it has left for good."""
        self._serial = 0
        self.busy_since: int | None = None
        """When the request was sent that is not answered yet."""

    # -- connecting -----------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """What it does next."""
        world, rng = self.world, self.world.rng
        if self.busy_since is not None or self.gone:
            return
        if world.leaving:
            self._leave()
            return
        chance = rng.random()
        if self.connection is None or not self.connection.broker.up:
            self._connect()
        elif chance < 0.01:
            world.note("member crashed")
            self._lose_connection()
            self._begin_again()
        elif chance < 0.02:
            world.note("connection lost")
            self._lose_connection()
        elif chance < 0.03 or (chance > 0.7 and self.connection.broker.id != world.leader[0]):
            world.note("session on another connection")
            former = self.connection
            self._connect()
            world.at(rng.randint(1, 2_000), former.close)
        elif chance < 0.05 and self.epoch != OPEN:
            world.note("session closed")
            self._close_session()
            return
        elif chance < 0.30 and self.epoch != OPEN and self.held:
            self._acknowledge()
            return
        else:
            self._fetch()
            return
        self._later(rng.randint(5, 300))

    def _later(self, delay_ms: int) -> None:
        self.world.at(delay_ms, self.step)

    def _begin_again(self) -> None:
        self.lives += 1
        self.member_id = f"m{self.number}.{self.lives}"
        self.held.clear()

    def _connect(self) -> None:
        """To the leader, as far as it knows."""
        world = self.world
        believed = world.leader[0] if world.rng.random() < 0.9 else world.rng.choice(list(world.brokers))
        broker = world.brokers.get(believed)
        self.epoch = OPEN
        self.connection = None
        if broker is not None and broker.up:
            self.connection = Connection(broker)
            broker.connections.append(self.connection)

    def _lose_connection(self) -> None:
        connection, self.connection = self.connection, None
        self.epoch = OPEN
        self.held.clear()
        if connection is not None:
            self.world.at(self.world.rng.choice([0, 5, 500]), connection.close)

    # -- requests -------------------------------------------------------------------------------------------------------------

    def _fetch(self) -> None:
        world, rng = self.world, self.world.rng
        acks = self._choose_acks() if self.epoch != OPEN and rng.random() < 0.7 else []
        renews = any(RENEW in kinds for _, _, kinds in acks)
        partition = fetching.FetchPartition(0, [fetching.AcknowledgementBatch(*each) for each in acks])
        large = not renews and not world.impatient and rng.random() < 0.3
        request = fetching.ShareFetchRequest(
            self.group,
            self.member_id,
            self.epoch,
            0 if renews else rng.choice([0, 100, 500, 500, 3_000]),
            LARGE_MIN_BYTES if large else 0 if renews else rng.choice([0, 1]),
            0 if renews else 1 << 20 if large else rng.choice([1, 50, 200, 1 << 20, 1 << 20]),
            0 if renews else rng.choice([1, 2, 7, 30, 500, 500]),
            rng.choice([1, 5, 500]),
            int(rng.random() < 0.3),
            renews,
            [fetching.FetchTopic(TOPIC_ID, [partition])] if acks or self.epoch == OPEN or rng.random() < 0.3 else [],
        )
        self._send(request, acks)

    def _acknowledge(self) -> None:
        acks = self._choose_acks()
        if not acks:
            self._later(50)
            return
        self._send(self._acknowledgement(acks, self.epoch), acks)

    def _acknowledgement(self, acks: list[tuple[int, int, list[int]]], epoch: int) -> acknowledging.ShareAcknowledgeRequest:
        batches = [acknowledging.AcknowledgementBatch(*each) for each in acks]
        partition = acknowledging.AcknowledgePartition(0, batches)
        renews = any(RENEW in kinds for _, _, kinds in acks)
        topics = [acknowledging.AcknowledgeTopic(TOPIC_ID, [partition])] if acks else []
        return acknowledging.ShareAcknowledgeRequest(self.group, self.member_id, epoch, renews, topics)

    def _close_session(self) -> None:
        acks = [each for each in self._choose_acks() if RENEW not in each[2]]
        self._send(self._acknowledgement(acks, CLOSE), acks)

    def _leave(self) -> None:
        if self.connection is not None and self.connection.broker.up and self.epoch != OPEN:
            self.gone = True
            self._send(self._acknowledgement([], CLOSE), [])
        else:
            self.gone = True
            self._lose_connection()

    def _choose_acks(self) -> list[tuple[int, int, list[int]]]:
        """What it says about some of its records; sometimes about records whose locks have timed out."""
        world, rng = self.world, self.world.rng
        if world.calm or rng.random() < 0.7:
            for offset in [each for each, since in self.held.items() if world.now >= since + world.lock_ms(self.group)]:
                del self.held[offset]
        if not self.held or (not world.calm and rng.random() < 0.1):
            return []
        offsets = sorted(self.held)
        if not world.calm and rng.random() < 0.4:
            offsets = offsets[: rng.randint(1, len(offsets))] if rng.random() < 0.5 else offsets[rng.randrange(len(offsets)) :]
        weights = (
            [0, 1, 0, 0, 0] if world.calm else rng.choice([[0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 6, 2, 2, 0], [0, 0, 0, 0, 1]])
        )
        acks: list[tuple[int, int, list[int]]] = []
        for offset in offsets:
            kind = rng.choices(range(5), weights)[0]
            if acks and acks[-1][1] + 1 == offset and rng.random() < 0.95:
                acks[-1] = (acks[-1][0], offset, [*acks[-1][2], kind])
            else:
                acks.append((offset, offset, [kind]))
        return [(first, last, kinds[:1] if len(set(kinds)) == 1 and rng.random() < 0.5 else kinds) for first, last, kinds in acks]

    def _send(self, request: Any, acks: list[tuple[int, int, list[int]]]) -> None:
        world, connection = self.world, self.connection
        assert connection is not None
        self._serial += 1
        serial = self._serial
        self.busy_since = began = world.now
        broker = connection.broker

        def arrive() -> None:
            if not connection.open or not broker.up:
                world.at(world.rng.randint(0, 50), lambda: self._answered(serial, request, acks, None))
                return
            attempt = world.ledger.attempt(self.group, self.member_id, acks)
            with world.ledger.serving(attempt):
                connection.waits = broker.serve(request, connection, lambda answer: leave(attempt, answer))

        def leave(attempt: Any, answer: Any) -> None:
            world.ledger.answered(attempt, answer)
            if world.loses_of_members():
                world.note("answer to a member lost")
                world.at(world.rng.randint(0, 500), connection.close)
                world.at(world.rng.randint(0, 900), lambda: self._answered(serial, request, acks, None))
            else:
                world.at(world.rng.randint(0, 10), lambda: self._answered(serial, request, acks, answer))

        def died() -> None:
            if self._serial == serial and self.busy_since == began:
                if not broker.up or not connection.open:
                    self._answered(serial, request, acks, None)
                else:
                    world.at(1_000, died)

        world.at(world.rng.randint(0, 10), arrive)
        world.at(1_000, died)

    def _answered(self, serial: int, request: Any, acks: list[tuple[int, int, list[int]]], answer: Any) -> None:
        world, rng = self.world, self.world.rng
        if serial != self._serial or self.busy_since is None:
            return
        self.busy_since = None
        if self.gone:
            return
        if answer is None:
            self._lose_connection()
            self._later(rng.randint(10, 500))
            return
        closes = request.share_session_epoch == CLOSE
        if answer.error_code:
            world.note(f"session error {ErrorCode(answer.error_code).name}")
            self.epoch = OPEN
        elif closes:
            self.epoch = OPEN
            self._begin_again()
        else:
            self.epoch = 1 if self.epoch == OPEN else self.epoch + 1
        for first, last, kinds in acks:
            for offset in range(first, last + 1):
                if (kinds[0] if len(kinds) == 1 else kinds[offset - first]) != RENEW:
                    self.held.pop(offset, None)
                elif offset in self.held:
                    self.held[offset] = world.now
        pause_ms = rng.choice([1, 20, 200, 1_500, 5_000]) if not world.calm else rng.choice([20, 200, 500])
        for part in [part for topic in answer.responses for part in topic.partitions]:
            if part.error_code:
                world.note(f"partition error {ErrorCode(part.error_code).name}")
                if part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    self._lose_connection()
                pause_ms = max(pause_ms, 50)
            for one in getattr(part, "acquired_records", ()):
                for offset in range(one.first_offset, one.last_offset + 1):
                    self.held[offset] = world.now
        self._later(pause_ms)
