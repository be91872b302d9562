"""What should move when brokers are balanced, one is drained, or a topic gets another replication factor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tidelog.console.moving.balance_plan import TOLERANCE, CannotPlan, Held, Move, drain, plan
from tidelog.console.moving.layout import Layout

SHOWN = 5


def balanced(layout: Layout, brokers: Sequence[int] | None = None, *, tolerance: float = TOLERANCE) -> list[Move]:
    """Moves that spread replicas, bytes and leaders over ``brokers``, by default over all that live and are not cordoned.

    CannotPlan when one of them, or one that holds replicas now, is down or unknown.
    """
    if brokers is None:
        if layout.down:
            raise CannotPlan(
                f"Broker {_numbers(layout.down)} is registered, and down: its replicas can neither stay nor be counted on. Start "
                "it, drain it, or choose the brokers that hold replicas afterwards."
            )
        brokers = [broker for broker in sorted(layout.racks) if broker not in layout.cordoned]
    for broker in brokers:
        _known(layout, broker)
        if broker in layout.down:
            raise CannotPlan(f"Broker {broker} is down. Start it, or leave it out.")
    return plan(layout.held(), {broker: layout.racks[broker] for broker in brokers}, machines=layout.hosts, tolerance=tolerance)


def drained(layout: Layout, node: int) -> list[Move]:
    """Moves that take everything off a broker, up or down. Replicas on other brokers that are down or cordoned stay there.

    CannotPlan when a partition could not keep its replicas, or has no replica to copy from.
    """
    _known(layout, node)
    lost = [each for each in layout.seen if node in each.replicas and each.leader is None]
    if lost:
        names = ", ".join(f"{each.partition[0]}-{each.partition[1]}" for each in lost[:SHOWN])
        raise CannotPlan(
            f"{len(lost)} partition(s) of broker {node} have no leader to copy from: {names}. Start the brokers that hold "
            "their last replicas in sync, or delete the topics."
        )
    closed = {*layout.down, *layout.cordoned}
    return drain(layout.held(), {**layout.down, **layout.racks}, [node], machines=layout.hosts, closed=closed)


def with_factor(layout: Layout, topic: str, factor: int) -> list[Move]:
    """Moves that give each partition of a topic ``factor`` replicas.

    New ones go to racks and machines without one first, then to the broker with the fewest. Of those that go, the first replica
    is never one, and racks with two lose one first. CannotPlan when there are not so many brokers, or no such topic.
    """
    held = layout.held()
    parts = [each for each in held if each.partition[0] == topic]
    if not parts:
        raise CannotPlan(f"There is no topic {topic}.")
    open_to_new = [broker for broker in sorted(layout.racks) if broker not in layout.cordoned]
    if factor > len({*open_to_new, *layout.down, *layout.cordoned}) or factor < 1:
        raise CannotPlan(f"{factor} replicas need {factor} brokers; {len(open_to_new)} can take some.")
    count = Counter(broker for each in held for broker in each.replicas)
    moves = []
    for each in sorted(parts, key=lambda each: each.partition):
        after = list(each.replicas)
        while len(after) > factor:
            count[gone := _spare(layout, after, count)] -= 1
            after.remove(gone)
        while len(after) < factor:
            count[new := _home(layout, each, after, open_to_new, count)] += 1
            after.append(new)
        if tuple(after) != each.replicas:
            moves.append(Move(each.partition, each.replicas, tuple(after), each.size))
    return moves


def _spare(layout: Layout, replicas: Sequence[int], count: Counter[int]) -> int:
    """The replica that can go: of a broker that is down, in a rack or on a machine with two, or on the fullest broker."""
    racks, hosts = _places(layout, replicas)
    return max(
        replicas[1:],
        key=lambda broker: (
            broker in layout.down,
            racks[_rack(layout, broker)] > 1,
            hosts[_host(layout, broker)] > 1,
            count[broker],
            broker,
        ),
    )


def _home(layout: Layout, held: Held, replicas: Sequence[int], brokers: Iterable[int], count: Counter[int]) -> int:
    free = [broker for broker in brokers if broker not in replicas]
    if not free:
        topic, index = held.partition
        raise CannotPlan(f"No broker is left that could take another replica of {topic}-{index}. Add one, or start those down.")
    racks, hosts = _places(layout, replicas)
    return min(free, key=lambda broker: (racks[_rack(layout, broker)], hosts[_host(layout, broker)], count[broker], broker))


def _places(layout: Layout, replicas: Sequence[int]) -> tuple[Counter[str], Counter[str]]:
    """How many of these replicas are in each rack, and on each machine."""
    return Counter(_rack(layout, each) for each in replicas), Counter(_host(layout, each) for each in replicas)


def _rack(layout: Layout, broker: int) -> str:
    """Racks count where every broker has one; otherwise all are in the same."""
    racks = {**layout.down, **layout.racks}
    found = racks.get(broker)
    return "" if found is None or None in racks.values() else found


def _host(layout: Layout, broker: int) -> str:
    return (layout.hosts or {}).get(broker, str(broker))


def _known(layout: Layout, broker: int) -> None:
    if broker not in layout.racks and broker not in layout.down:
        raise CannotPlan(f"The cluster has no broker {broker}; it has {_numbers({*layout.racks, *layout.down})}.")


def _numbers(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))
