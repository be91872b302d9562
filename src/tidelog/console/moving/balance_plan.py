"""Plans replica moves, as pure functions.

From the current placement, a plan takes three steps, each with as little data moved as possible:

1. Required: replicas leave the leaving brokers, and racks and machines with two replicas of a partition while another has none.
2. Balance: replicas move from the fullest broker to the emptiest until their numbers differ by at most one, each time the one
   whose size brings both nearer to their share and whose topic is rarer there; then exchanges, while bytes differ too much.
3. Leaders: the order of the replicas, which costs nothing to change.

Every plan keeps each partition's replication factor, never puts two replicas on one broker, and leaves no partition on fewer
racks and machines than possible. A balanced cluster gives an empty plan, so after an interruption the plan is computed again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

Partition = tuple[str, int]
"""Topic and partition."""
TOLERANCE = 0.1
"""Allowed imbalance of the brokers' bytes, as a share of their mean."""
SMALL_BYTES = 1 << 20
"""Differences below this are not worth a move."""


class CannotPlan(Exception):
    """No plan is possible; the text says why and what would help."""


@dataclass(frozen=True, slots=True)
class Held:
    """The current state of a partition: its replicas, preferred leader first, and the bytes of one of them."""

    partition: Partition
    replicas: tuple[int, ...]
    size: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """A partition with new replicas, or the same in another order."""

    partition: Partition
    before: tuple[int, ...]
    after: tuple[int, ...]
    size: int

    @property
    def coming(self) -> tuple[int, ...]:
        """Brokers that get a new replica."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def bytes_moved(self) -> int:
        """Bytes copied over the network."""
        return len(self.coming) * self.size


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a broker."""

    replicas: int
    leaders: int
    size: int


def plan(
    held: Iterable[Held],
    racks: Mapping[int, str | None],
    *,
    machines: Mapping[int, str] | None = None,
    leaving: Iterable[int] = (),
    tolerance: float = TOLERANCE,
) -> list[Move]:
    """The moves, by partition, that balance all brokers in ``racks`` except the leaving ones.

    ``racks``: the rack of each broker that may hold replicas; they count only when every broker has one. ``machines``: the
    machine of each broker, by any name; None when each has its own. CannotPlan when a partition has more replicas than brokers
    stay.
    """
    board = _Board(held, racks, machines, frozenset(leaving))
    board.evacuate()
    board.repair_racks()
    board.repair_machines()
    board.even_counts()
    board.even_bytes(tolerance)
    board.even_leaders()
    return board.moves()


def drain(
    held: Iterable[Held],
    racks: Mapping[int, str | None],
    leaving: Iterable[int],
    *,
    machines: Mapping[int, str] | None = None,
    closed: Iterable[int] = (),
) -> list[Move]:
    """The moves that take all replicas off some brokers, and change nothing else. CannotPlan as ``plan``.

    ``closed``: brokers in ``racks`` that keep their replicas and get no new ones.
    """
    board = _Board(held, racks, machines, frozenset(leaving), frozenset(closed))
    board.evacuate()
    return board.moves()


def loads(held: Iterable[Held], brokers: Iterable[int]) -> dict[int, Load]:
    """The load of each broker."""
    result = dict.fromkeys(sorted(brokers), Load(0, 0, 0))
    for each in held:
        for place, broker in enumerate(each.replicas):
            now = result.get(broker, Load(0, 0, 0))
            result[broker] = Load(now.replicas + 1, now.leaders + (place == 0), now.size + each.size)
    return result


def applied(held: Iterable[Held], moves: Iterable[Move]) -> list[Held]:
    """The partitions after these moves."""
    after = {move.partition: move.after for move in moves}
    return [replace(each, replicas=after.get(each.partition, each.replicas)) for each in held]


class _Board:
    """The replicas during planning. Iteration is always in a fixed order, so that equal input gives an equal plan."""

    def __init__(
        self,
        held: Iterable[Held],
        racks: Mapping[int, str | None],
        machines: Mapping[int, str] | None,
        leaving: frozenset[int],
        closed: frozenset[int] = frozenset(),
    ) -> None:
        self._closed = closed
        self._held = sorted(held, key=lambda each: each.partition)
        self._size = {each.partition: each.size for each in self._held}
        self._replicas = {each.partition: list(each.replicas) for each in self._held}
        self._brokers = sorted(broker for broker in racks if broker not in leaving)
        known = bool(self._brokers) and all(racks[broker] is not None for broker in self._brokers)
        self._rack = {broker: str(racks[broker]) if known else str(broker) for broker in self._brokers}
        self._rack_count = len(set(self._rack.values()))
        names = {broker: str(broker) for broker in self._brokers} if machines is None else machines
        by_rack = self._rack if known else dict.fromkeys(self._brokers, "")
        self._machine = {broker: (by_rack[broker], names[broker]) for broker in self._brokers}
        self._machine_count = len(set(self._machine.values()))
        for each in self._held:
            if len(each.replicas) > len(self._brokers):
                topic, index = each.partition
                raise CannotPlan(
                    f"{topic}-{index} has {_replicas(each.replicas)}, and only {len(self._brokers)} brokers would be left for "
                    "them. Add a broker, or lower the topic's replication factor first."
                )
        self._on: dict[int, dict[Partition, None]] = {broker: {} for broker in self._brokers}
        self._bytes = dict.fromkeys(self._brokers, 0)
        self._topics: dict[int, Counter[str]] = {broker: Counter() for broker in self._brokers}
        for partition, replicas in self._replicas.items():
            for broker in replicas:
                self._book(partition, broker, 1)

    def moves(self) -> list[Move]:
        """The changed partitions."""
        return [
            Move(each.partition, each.replicas, after, each.size)
            for each in self._held
            if (after := tuple(self._replicas[each.partition])) != each.replicas
        ]

    def evacuate(self) -> None:
        """Moves replicas off leaving and unknown brokers, the largest partitions first, each to the broker with the fewest
        replicas."""
        for each in sorted(self._held, key=lambda each: (-each.size, each.partition)):
            for broker in each.replicas:
                if broker not in self._on:
                    self._shift(each.partition, broker, self._home(each.partition, broker))

    def repair_racks(self) -> None:
        """Fixes partitions with two replicas in a rack while another rack has none."""
        for each in self._held:
            replicas = self._replicas[each.partition]
            wanted = min(len(replicas), self._rack_count)
            while len({self._rack[broker] for broker in replicas}) < wanted:
                shared = [broker for broker in replicas if _sharing(self._rack, replicas, broker) > 1]
                source = max(shared, key=lambda broker: (len(self._on[broker]), self._bytes[broker], broker))
                self._shift(each.partition, source, self._home(each.partition, source))

    def repair_machines(self) -> None:
        """Fixes partitions with two replicas on a machine while another machine has none. Racks stay as they are."""
        for each in self._held:
            replicas = self._replicas[each.partition]
            wanted = min(len(replicas), self._machine_count)
            while len({self._machine[broker] for broker in replicas}) < wanted:
                shared = [broker for broker in replicas if _sharing(self._machine, replicas, broker) > 1]
                source = max(shared, key=lambda broker: (len(self._on[broker]), self._bytes[broker], broker))
                self._shift(each.partition, source, self._home(each.partition, source))

    def even_counts(self) -> None:
        """Moves from the fullest to the emptiest broker, until no pair differs by two with something to move."""
        while self._even_one():
            pass

    def _even_one(self) -> bool:
        count = {broker: len(self._on[broker]) for broker in self._brokers}
        by_count = sorted(self._brokers, key=lambda broker: (count[broker], self._bytes[broker], broker))
        for source in reversed(by_count):
            for target in by_count:
                if count[source] - count[target] < 2:
                    break
                found = self._fitting(source, target, count)
                if found is not None:
                    self._shift(found, source, target)
                    return True
        return False

    def _fitting(self, source: int, target: int, count: Mapping[int, int]) -> Partition | None:
        """The partition to move: of a topic that is rarer at the target, and of about the size per replica that the target
        lacks."""
        share = sum(count.values()) / len(count)
        mean = sum(self._bytes.values()) / len(count)
        gives = (self._bytes[source] - mean) / max(1.0, count[source] - share)
        takes = (mean - self._bytes[target]) / max(1.0, share - count[target])
        wanted = max(0.0, min(gives, takes))
        there, here = self._topics[target], self._topics[source]
        best: tuple[tuple[bool, float, Partition], Partition] | None = None
        for partition in self._on[source]:
            if not self._may(partition, source, target):
                continue
            topic = partition[0]
            rank = (there[topic] >= here[topic], abs(self._size[partition] - wanted), partition)
            if best is None or rank < best[0]:
                best = rank, partition
        return None if best is None else best[1]

    def even_bytes(self, tolerance: float) -> None:
        """Exchanges a large replica for a smaller one between the brokers with most and least bytes, while they differ too
        much."""
        if not self._brokers:
            return
        limit = max(SMALL_BYTES, tolerance * sum(self._bytes.values()) / len(self._brokers))
        for _ in range(len(self._held)):
            by_bytes = sorted(self._brokers, key=lambda broker: (self._bytes[broker], broker))
            low, high = by_bytes[0], by_bytes[-1]
            gap = self._bytes[high] - self._bytes[low]
            if gap <= limit or not self._exchange(high, low, gap):
                return

    def _exchange(self, high: int, low: int, gap: int) -> bool:
        """Exchanges the pair of partitions that best halves the difference; False when no exchange is worth its bytes."""
        down = sorted((self._size[each], each) for each in self._on[low] if high not in self._replicas[each])
        sizes = [size for size, _ in down]
        best: tuple[float, Partition, Partition] | None = None
        for large in self._on[high]:
            if low in self._replicas[large]:
                continue
            near = bisect_left(sizes, self._size[large] - gap / 2)
            for size, small in down[max(0, near - 2) : near + 2]:
                less = self._size[large] - size
                off = abs(gap / 2 - less)
                # An exchange must close at least a quarter of the gap: smaller steps would move more than they gain.
                if not gap / 4 <= less <= gap * 3 / 4 or (best is not None and (off, large, small) >= best):
                    continue
                if self._may(large, high, low) and self._may(small, low, high):
                    best = off, large, small
        if best is None:
            return False
        self._shift(best[1], high, low)
        self._shift(best[2], low, high)
        return True

    def even_leaders(self) -> None:
        """Shifts preferred leaders along chains from a broker with most to one with at least two fewer, until there is no such
        chain."""
        while self._pass_leadership():
            pass

    def _pass_leadership(self) -> bool:
        led = dict.fromkeys(self._brokers, 0)
        edges: dict[int, dict[int, Partition]] = {broker: {} for broker in self._brokers}
        for partition, replicas in self._replicas.items():
            led[replicas[0]] += 1
            for other in replicas[1:]:
                edges[replicas[0]].setdefault(other, partition)
        for source in sorted(self._brokers, key=lambda broker: (-led[broker], broker)):
            chain = _chain(edges, source, {broker for broker in self._brokers if led[broker] <= led[source] - 2})
            if chain:
                for leader, follower in pairwise(chain):
                    replicas = self._replicas[edges[leader][follower]]
                    replicas.remove(follower)
                    replicas.insert(0, follower)
                return True
        return False

    def _book(self, partition: Partition, broker: int, sign: int) -> None:
        if broker not in self._on:
            return
        if sign > 0:
            self._on[broker][partition] = None
        else:
            del self._on[broker][partition]
        self._bytes[broker] += sign * self._size[partition]
        self._topics[broker][partition[0]] += sign

    def _shift(self, partition: Partition, source: int, target: int) -> None:
        replicas = self._replicas[partition]
        replicas[replicas.index(source)] = target
        self._book(partition, source, -1)
        self._book(partition, target, 1)

    def _home(self, partition: Partition, source: int) -> int:
        """The new broker of a replica that cannot stay: a rack without a replica first, then a machine without one, then the
        broker with the fewest."""
        replicas = self._replicas[partition]
        stay = [broker for broker in replicas if broker != source and broker in self._rack]
        racks, machines = {self._rack[broker] for broker in stay}, {self._machine[broker] for broker in stay}
        free = [broker for broker in self._brokers if broker not in replicas and broker not in self._closed]
        if not free:
            raise CannotPlan(
                f"{partition[0]}-{partition[1]} has {_replicas(replicas)}, and there is no broker left that could take the "
                f"one of broker {source}. Add a broker, or lower the topic's replication factor first."
            )
        return min(
            free,
            key=lambda broker: (
                self._rack[broker] in racks,
                self._machine[broker] in machines,
                len(self._on[broker]),
                self._topics[broker][partition[0]],
                self._bytes[broker],
                broker,
            ),
        )

    def _may(self, partition: Partition, source: int, target: int) -> bool:
        """Whether the move keeps the replicas on distinct brokers and on as many racks and machines as before."""
        replicas = self._replicas[partition]
        if target in replicas:
            return False
        return all(
            places[source] == places[target]
            or _sharing(places, replicas, source) > 1
            or all(places[broker] != places[target] for broker in replicas)
            for places in (self._rack, self._machine)
        )


def _sharing(places: Mapping[int, object], replicas: Sequence[int], broker: int) -> int:
    """How many of the replicas are in the broker's rack, or on its machine."""
    return sum(places.get(each) == places[broker] for each in replicas)


def _chain(edges: Mapping[int, Mapping[int, Partition]], source: int, ends: set[int]) -> list[int]:
    """The shortest path from ``source`` to one of ``ends``; empty when there is none."""
    before: dict[int, int] = {source: source}
    queue = deque([source])
    while queue:
        broker = queue.popleft()
        if broker in ends:
            way = [broker]
            while way[-1] != source:
                way.append(before[way[-1]])
            return way[::-1]
        for other in edges[broker]:
            if other not in before:
                before[other] = broker
                queue.append(other)
    return []


def _replicas(replicas: Sequence[int]) -> str:
    return "1 replica" if len(replicas) == 1 else f"{len(replicas)} replicas"
