"""What the nodes' own pages add to a sample of a group: their facts and metrics, and the windows of share partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidelog.cli.facts.endpoint import Page, Reader
from tidelog.cli.refusal import CommandFailed
from tidelog.client.calls import Partition
from tidelog.console.group_facts import Sample
from tidelog.console.node_facts import NodeFacts, node_facts
from tidelog.console.windows import asked, with_windows

NOT_READ: Final = (KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Nodes:
    """What some endpoints say now; ``unread``: why others do not. A node that is down must not hide what the others know."""

    facts: tuple[NodeFacts, ...] = ()
    unread: tuple[str, ...] = ()


def nodes_at(endpoints: Sequence[str], reader: Reader) -> Nodes:
    """The facts and metrics of these endpoints."""
    nodes: list[NodeFacts] = []
    unread: list[str] = []
    for endpoint in endpoints:
        try:
            pages = reader.read(endpoint)
            # Several processes behind one address share a page of metrics, whose values belong to no one of them.
            text = reader.metrics(endpoint) if len(pages) == 1 else None
            nodes += [node_facts(page, text) for page in pages]
        except CommandFailed as problem:
            unread.append(str(problem))
        except NOT_READ as problem:
            unread.append(f"{endpoint}: its page is of something else ({type(problem).__name__})")
    return Nodes(tuple(nodes), tuple(unread))


def with_nodes(found: Sample, group: str, endpoints: Sequence[str], reader: Reader, nodes: Nodes) -> Sample:
    """The sample with these, and with the windows of its share partitions."""
    windows: dict[Partition, list[Page]] = {}
    unread = list(nodes.unread)
    for endpoint in endpoints if asked(found) else ():
        try:
            for at in asked(found):
                offset = found.partitions[at].committed or 0
                windows.setdefault(at, []).extend(reader.share_record(endpoint, group, at[0], at[1], offset))
        except CommandFailed as problem:
            unread.append(str(problem))
    found = replace(found, nodes=nodes.facts, unread=tuple(dict.fromkeys(unread)))
    return with_windows(found, group, windows)
