"""A page of the cluster's partitions: topics in the order of their names, at most so many partitions at once (KIP-966)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.metadata.image import TopicImage, TopicsImage


class Cursor(NamedTuple):
    """Where a page begins."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Page:
    """``parts`` are (name, topic or None when there is none of that name, numbers of its partitions on this page).

    ``following`` is where the next page begins; None after the last one.
    """

    parts: tuple[tuple[str, TopicImage | None, range], ...]
    following: Cursor | None = None


def page_of(topics: TopicsImage, names: Sequence[str], begin: Cursor | None, limit: int) -> Page:
    """Up to ``limit`` (at least 1) partitions of the topics called ``names``, or of all topics when there are no names.

    Topics before ``begin`` are passed over. A topic that does not exist takes no room, but a full page ends before it.
    """
    assert limit >= 1, limit
    wanted = sorted(set(names or topics.by_name))
    parts: list[tuple[str, TopicImage | None, range]] = []
    room = limit
    for name in wanted:
        if begin is not None and name < begin.topic:
            continue
        if room == 0:
            return Page(tuple(parts), Cursor(name, 0))
        topic = topics.by_name.get(name)
        if topic is None:
            parts.append((name, None, range(0)))
            continue
        first = begin.partition if begin is not None and name == begin.topic else 0
        end = min(len(topic.partitions), first + room)
        numbers = range(first, end)
        parts.append((name, topic, numbers))
        room -= len(numbers)
        if end < len(topic.partitions) and first < len(topic.partitions):
            return Page(tuple(parts), Cursor(name, end))
    return Page(tuple(parts))
