"""Cycles of dependencies: whether what was written and read can have happened in any order at all.

The nodes are transactions, and polls and sends outside of them. The edges:

- wr: one read what the other had written, as a read_committed reader;
- process: one was over when its process began the other, so that what the first had seen was there for the second;
- ww (only with ``write_order``): one's record lies directly before the other's in a partition;
- rw (only with ``write_order``): one stopped reading a partition directly before the other's record.

With Kafka's rules the last two do not count. Transactions that are open at the same time may write to the same partitions in
turn, and what a poll has not seen yet is no promise: cycles over these edges are lawful there, and common. Where transactions
are run one after another, or claimed to be as if they were, ask for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from itertools import pairwise

from tidelog.testing.checker.ledger import Ledger, Outcome, Poll, Transaction, Write
from tidelog.testing.checker.verdict import Anomaly, Verdict


class Edge(IntFlag):
    """Why one node comes before another."""

    PROCESS = 1
    WW = 2
    WR = 4
    RW = 8


Node = Transaction | Poll | Write
# From the worst to the least: which edges a cycle may have, to be the anomaly.
CLASSES = (
    (Anomaly.G0, Edge.WW | Edge.PROCESS),
    (Anomaly.G1C, Edge.WW | Edge.WR | Edge.PROCESS),
)


@dataclass(slots=True)
class Graph:
    """``after[node]`` are the nodes that follow it, each with the reasons."""

    nodes: list[Node]
    after: list[dict[int, Edge]]

    def add(self, before: int, after: int, why: Edge) -> None:
        """Adds an edge, unless it is a loop."""
        if before != after:
            found = self.after[before]
            found[after] = found.get(after, Edge(0)) | why


def judge_cycles(ledger: Ledger, verdict: Verdict, *, write_order: bool = False) -> None:
    """Adds a finding for each strongly connected part of the graph: the shortest cycle in it, by its worst class."""
    graph = build(ledger, write_order=write_order)
    for part in components(graph.after):
        _tell(graph, part, verdict)


def build(ledger: Ledger, *, write_order: bool) -> Graph:
    """The graph of a history. Aborted transactions are in it as readers, because their reads count."""
    nodes: list[Node] = [*ledger.transactions.values()]
    nodes += (poll for poll in ledger.polls if poll.transaction is None)
    nodes += (write for write in ledger.writes.values() if write.transaction is None)
    number = {id(node): index for index, node in enumerate(nodes)}
    graph = Graph(nodes, [{} for _ in nodes])
    for poll in ledger.polls:
        if not poll.committed_only:
            continue
        reader = number[id(poll.transaction or poll)]
        for _, _, value in poll.records:
            write = ledger.writes.get(value)
            if write is not None:
                graph.add(number[id(write.transaction or write)], reader, Edge.WR)
    _add_processes(graph)
    if write_order:
        _add_write_order(ledger, graph, number)
    return graph


def _span(node: Node) -> tuple[str, int, int | None]:
    """Process, beginning and end, as numbers of events; no end when it is unknown."""
    if isinstance(node, Poll):
        return node.process, node.asked_at, node.at
    if isinstance(node, Transaction):
        return node.process, node.begun_at, node.ended_at
    return node.process, node.asked_at, None  # Others may be sent before it is acknowledged, and it has read nothing.


def _add_processes(graph: Graph) -> None:
    by_process: dict[str, list[tuple[int, int | None, int]]] = {}
    for index, node in enumerate(graph.nodes):
        process, begin, end = _span(node)
        by_process.setdefault(process, []).append((begin, end, index))
    for spans in by_process.values():
        spans.sort()
        over: tuple[int, int] | None = None
        for begin, end, index in spans:
            if over is not None and over[0] < begin:
                graph.add(over[1], index, Edge.PROCESS)
            if end is not None and (over is None or end > over[0]):
                over = (end, index)


def _add_write_order(ledger: Ledger, graph: Graph, number: dict[int, int]) -> None:
    logs: dict[str, list[Write]] = {}
    for write in ledger.writes.values():
        if write.place is not None and write.promised:
            logs.setdefault(write.partition, []).append(write)
    following: dict[str, Write] = {}
    for log in logs.values():
        log.sort(key=lambda write: write.place or 0)
        for before, after in pairwise(log):
            following[before.value] = after
            graph.add(number[id(before.transaction or before)], number[id(after.transaction or after)], Edge.WW)
    ends: dict[tuple[int, str], str] = {}
    for poll in ledger.polls:
        if poll.committed_only:
            reader = number[id(poll.transaction or poll)]
            ends.update({(reader, partition): value for partition, _, value in poll.records})
    for (reader, _), value in ends.items():
        after_it = following.get(value)
        if after_it is not None:
            graph.add(reader, number[id(after_it.transaction or after_it)], Edge.RW)


def components(
    after: Sequence[dict[int, Edge]], allowed: Edge | None = None, only: Sequence[int] | None = None
) -> Iterator[list[int]]:
    """The strongly connected parts with more than one node (Tarjan's algorithm, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    inside = None if only is None else set(only)

    def edges(node: int) -> Iterator[int]:
        for target, why in after[node].items():
            if (allowed is None or why & allowed) and (inside is None or target in inside):
                yield target

    for root in range(len(after)) if only is None else only:
        if root in index or not after[root]:
            continue
        work: list[tuple[int, Iterator[int]]] = [(root, edges(root))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, edges(target)))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = _pop(stack, on_stack, node)
                    if len(part) > 1:
                        yield part


def _pop(stack: list[int], on_stack: set[int], upto: int) -> list[int]:
    part = []
    while True:
        node = stack.pop()
        on_stack.discard(node)
        part.append(node)
        if node == upto:
            return part


def _tell(graph: Graph, part: list[int], verdict: Verdict) -> None:
    for anomaly, allowed in CLASSES:
        for smaller in components(graph.after, allowed, part):
            verdict.add(anomaly, _text(graph, shortest_cycle(graph.after, smaller, allowed)))
            return
    # Only with anti-dependencies: try with at most one of them.
    inside = set(part)
    calm = Edge.WW | Edge.WR | Edge.PROCESS
    for node in part:
        for target, why in graph.after[node].items():
            if target in inside and why & Edge.RW:
                way = _way(graph.after, target, node, inside, calm)
                if way is not None:
                    verdict.add(Anomaly.G_SINGLE, _text(graph, [node, *way]))
                    return
    verdict.add(Anomaly.G2, _text(graph, shortest_cycle(graph.after, part, calm | Edge.RW)))


def shortest_cycle(after: Sequence[dict[int, Edge]], part: Sequence[int], allowed: Edge) -> list[int]:
    """The shortest of the cycles through the part's first hundred nodes; it begins and ends with the same node."""
    inside = set(part)
    best: list[int] = []
    for node in part[:100]:
        for target, why in after[node].items():
            if target in inside and why & allowed:
                way = _way(after, target, node, inside, allowed)
                if way is not None and (not best or len(way) + 1 < len(best)):
                    best = [node, *way]
    return best


def _way(after: Sequence[dict[int, Edge]], start: int, goal: int, inside: set[int], allowed: Edge) -> list[int] | None:
    """The shortest path from ``start`` to ``goal``, both included."""
    came_from = {start: start}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if node == goal:
            way = [node]
            while node != start:
                node = came_from[node]
                way.append(node)
            return way[::-1]
        for target, why in after[node].items():
            if target in inside and why & allowed and target not in came_from:
                came_from[target] = node
                waiting.append(target)
    return None


def _text(graph: Graph, cycle: list[int]) -> str:
    words = [_name(graph.nodes[cycle[0]])]
    for before, after in pairwise(cycle):
        why = graph.after[before][after]
        words.append(f"-{'/'.join(edge.name or '' for edge in Edge if edge & why).lower()}-> {_name(graph.nodes[after])}")
    return " ".join(words)


def _name(node: Node) -> str:
    if isinstance(node, Transaction):
        doubt = {Outcome.DONE: "", Outcome.ASKED: ", unknown", Outcome.REFUSED: ", aborted"}[node.outcome]
        return f"{node.name} ({node.process}{doubt})"
    if isinstance(node, Poll):
        return f"the poll of {node.process} at event {node.at}"
    return f"the send of {node.value}"
