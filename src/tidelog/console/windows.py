"""From the pages of nodes about share partitions to the windows of a sample. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tidelog.client.calls import Partition
from tidelog.console.group_facts import ACTIVE, Sample, ShareProgress, ShareWindow
from tidelog.console.node_facts import LOCK_TIMEOUTS, NodeFacts

MOST: Final = 50
"""Partitions of a group that are asked for."""


def asked(found: Sample) -> list[Partition]:
    """The partitions to ask the leaders about: those with a lag first."""
    rows = [at for at, part in found.partitions.items() if part.share is not None and part.leader >= 0]
    return sorted(rows, key=lambda at: (not found.partitions[at].lag, at))[:MOST]


def with_windows(found: Sample, group_id: str, pages: Mapping[Partition, Sequence[Mapping[str, Any]]]) -> Sample:
    """The sample with what the leaders say. KeyError, TypeError: a page is of something else."""
    partitions = dict(found.partitions)
    for at, each in pages.items():
        part = partitions[at]
        for page in each:
            if page["leader"] is None:
                continue
            share = page["leader"]["share"]
            window = None if share is None else _window(share, _timeouts(found.nodes, page["node"]["id"], group_id, at))
            known = replace(part.share or ShareProgress(), window=window, leader_seen=True)
            start = window.start if window is not None and window.phase == ACTIVE else part.committed
            partitions[at] = replace(part, share=known, committed=start)
    return replace(found, partitions=partitions)


def _window(share: Mapping[str, Any], timeouts: float | None) -> ShareWindow:
    if share["phase"] != ACTIVE:
        return ShareWindow(str(share["phase"]), share["error"])
    first = share["first"] or {}
    return ShareWindow(
        ACTIVE,
        None,
        int(share["start_offset"]),
        int(share["end_offset"]),
        int(share["in_flight"]),
        int(share["finished_above_start"]),
        first.get("state"),
        int(first.get("delivery_count") or 0),
        first.get("member"),
        int(first.get("lock_left_ms") or 0),
        timeouts,
    )


def _timeouts(nodes: tuple[NodeFacts, ...], node_id: int, group_id: str, at: Partition) -> float | None:
    """Of the leader's metrics; 0 where it has read them and no lock has timed out yet."""
    for node in nodes:
        if node.node_id == node_id and node.metrics is not None:
            return node.value(LOCK_TIMEOUTS, group=group_id, topic=at[0], partition=str(at[1])) or 0.0
    return None
