"""A plan of moves that is carried out a few partitions at a time, as a pure machine.

The shell asks the cluster what is under way, tells this, and asks the controller for what this says. All else is in the cluster:
what was begun is finished by the brokers though this is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from tidelog.console.moving.balance_plan import Move, Partition


class Moving:
    """Moves in three places: ``pending``, ``flying`` and done. A partition is in one of them."""

    def __init__(self, moves: Iterable[Move], concurrent: int) -> None:
        """``concurrent``: partitions that move at a time, those that others move included."""
        self._pending = deque(sorted(moves, key=lambda move: (-move.bytes_moved, move.partition)))
        self._flying: dict[Partition, Move] = {}
        self._concurrent = concurrent
        self._done = 0
        self._failed: dict[Partition, str] = {}
        self._stopped = False
        self.total = len(self._pending)

    @property
    def pending(self) -> int:
        """Moves that have not begun."""
        return len(self._pending)

    @property
    def flying(self) -> Mapping[Partition, Move]:
        """Moves that brokers are at."""
        return self._flying

    @property
    def done(self) -> int:
        """Moves that are complete."""
        return self._done

    @property
    def failed(self) -> Mapping[Partition, str]:
        """Moves that were refused, or that another tool took back, and why."""
        return self._failed

    @property
    def stopping(self) -> bool:
        """Whether no more moves begin."""
        return self._stopped

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do."""
        return not self._flying and not self._pending

    def stop(self) -> int:
        """Begin no more; what has begun ends. Returns how many moves are given up."""
        given_up = len(self._pending)
        self._pending.clear()
        self._stopped = True
        return given_up

    def landed(self, under_way: Collection[Partition]) -> list[Partition]:
        """The moves that have begun and are not under way any more."""
        return [partition for partition in self._flying if partition not in under_way]

    def settle(self, placed: Mapping[Partition, Sequence[int]]) -> None:
        """Where replicas of landed partitions are now: done, or taken back; a topic that is gone has nothing left to move."""
        for partition, replicas in placed.items():
            move = self._flying.pop(partition)
            if not replicas or set(replicas) == set(move.after):
                self._done += 1
            else:
                self._failed[partition] = "another tool has moved it elsewhere, or cancelled it"
        self._check()

    def begin(self, under_way: Collection[Partition], alive: Collection[int]) -> dict[Partition, tuple[int, ...]]:
        """The next moves. Those to brokers that are down wait, and hold up no others."""
        busy = len({*under_way, *self._flying})
        begun: dict[Partition, tuple[int, ...]] = {}
        waiting: deque[Move] = deque()
        while self._pending and busy + len(begun) < self._concurrent:
            move = self._pending.popleft()
            if all(broker in alive for broker in move.coming):
                begun[move.partition] = move.after
                self._flying[move.partition] = move
            else:
                waiting.append(move)
        self._pending.extendleft(reversed(waiting))
        self._check()
        return begun

    def unsure(self, begun: Collection[Partition]) -> None:
        """It is not known whether these have begun: they are asked for again, which changes nothing where they have."""
        self._pending.extendleft(reversed([self._flying.pop(partition) for partition in begun]))
        self._check()

    def refused(self, failed: Mapping[Partition, str]) -> None:
        """Moves that the controller did not take."""
        for partition, problem in failed.items():
            del self._flying[partition]
            self._failed[partition] = problem
        self._check()

    def _check(self) -> None:
        count = len(self._pending) + len(self._flying) + self._done + len(self._failed)
        assert count == self.total or (self._stopped and count < self.total), "a move is lost, or counted twice"
