"""May a broker stop now, by the metadata alone: what a rolling restart waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidelog.metadata.image import ClusterImage


class Sparing(NamedTuple):
    """``behind``: partitions of the broker in whose ISR it is not. ``needed``: partitions that would be left with fewer replicas
    in sync than ``min.insync.replicas`` asks for, though enough others exist; waiting helps."""

    behind: int
    needed: int


def sparing(image: ClusterImage, broker_id: int, min_isr: Callable[[str], int]) -> Sparing:
    """The numbers of one broker; ``min_isr`` by topic. A partition whose other replicas are too few for ``min_isr`` counts as far
    as they go: nothing would become better by waiting for more."""
    behind = needed = 0
    for name, topic in image.topics.by_name.items():
        least: int | None = None
        for partition in topic.partitions:
            if broker_id not in partition.replicas:
                continue
            in_sync = broker_id in partition.isr
            behind += not in_sync
            others = len(partition.replicas) - 1
            if not others or not in_sync:
                continue
            if least is None:
                least = max(1, min_isr(name))
            needed += len(partition.isr) - 1 < min(least, others)
    return Sparing(behind, needed)
