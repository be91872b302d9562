"""Pages of the cluster's partitions: topics in order of name, a limited number of partitions per page (KIP-966)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.metadata.image import TopicImage, TopicsImage


class Cursor(NamedTuple):
    """The first partition of a page."""

    topic: str
    partition: int


class Page(NamedTuple):
    """``parts`` are (name, topic or None when it does not exist, numbers of its partitions on this page).

    ``following`` is where the next page begins; None after the last one.
    """

    parts: tuple[tuple[str, TopicImage | None, range], ...]
    following: Cursor | None = None


def page_of(topics: TopicsImage, names: Sequence[str], begin: Cursor | None, limit: int) -> Page:
    """Up to ``limit`` (at least 1) partitions of the topics ``names``, or of all topics when ``names`` is empty.

    Topics before ``begin`` are skipped. A topic that does not exist takes no room, but a full page ends before it.
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
