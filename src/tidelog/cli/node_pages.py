"""What the nodes' own pages add to a sample of a group: their facts and metrics, and the windows of share partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tidelog.cli.facts.endpoint import Page, Reader
from tidelog.cli.refusal import CommandFailed
from tidelog.client.calls import Partition
from tidelog.console.group_facts import Sample
from tidelog.console.node_facts import NodeFacts, node_facts
from tidelog.console.windows import asked, with_windows

NOT_READ: Final = (KeyError, TypeError, ValueError)


def with_pages(found: Sample, group: str, endpoints: Sequence[str], reader: Reader) -> Sample:
    """The sample with what these endpoints say; ``unread`` names those that could not be read: a node that is down must not
    hide what the others know."""
    nodes: list[NodeFacts] = []
    windows: dict[Partition, list[Page]] = {}
    unread: list[str] = []
    for endpoint in endpoints:
        try:
            pages = reader.read(endpoint)
            # Several processes behind one address share a page of metrics, whose values belong to no one of them.
            text = reader.metrics(endpoint) if len(pages) == 1 else None
            nodes += [node_facts(page, text) for page in pages]
            for at in asked(found):
                offset = found.partitions[at].committed or 0
                windows.setdefault(at, []).extend(reader.share_record(endpoint, group, at[0], at[1], offset))
        except CommandFailed as problem:
            unread.append(str(problem))
        except NOT_READ as problem:
            unread.append(f"{endpoint}: its page is of something else ({type(problem).__name__})")
    return with_windows(replace(found, nodes=tuple(nodes), unread=tuple(unread)), group, windows)
