from __future__ import annotations

import pytest

from tidelog.metadata.image import PartitionImage, TopicImage, TopicsImage
from tidelog.metadata.topic_pages import Cursor, page_of
from tidelog.model.ids import Uuid

PARTITION = PartitionImage((1,), (1,), 1)


def cluster(**counts: int) -> TopicsImage:
    images = [TopicImage(Uuid(name.encode().ljust(16)), name, (PARTITION,) * count) for name, count in counts.items()]
    return TopicsImage({image.id: image for image in images}, {image.name: image for image in images})


def shown(
    topics: TopicsImage, *names: str, begin: Cursor | None = None, limit: int = 100
) -> tuple[list[tuple[str, list[int]]], Cursor | None]:
    page = page_of(topics, names, begin, limit)
    return [(name, list(numbers)) for name, _, numbers in page.parts], page.following


def test_topics_come_by_name_each_once_and_without_names_all_of_them() -> None:
    topics = cluster(b=1, a=2)
    everything = ([("a", [0, 1]), ("b", [0])], None)
    assert shown(topics) == everything
    assert shown(topics, "b", "a", "b") == everything


def test_a_page_ends_in_the_middle_of_a_topic() -> None:
    assert shown(cluster(a=3, b=3), limit=2) == ([("a", [0, 1])], Cursor("a", 2))


def test_a_page_that_is_full_where_a_topic_ends_goes_on_with_the_next_topic() -> None:
    assert shown(cluster(a=3, b=3), limit=3) == ([("a", [0, 1, 2])], Cursor("b", 0))
    assert shown(cluster(a=3), "a", "missing", limit=3) == ([("a", [0, 1, 2])], Cursor("missing", 0))


def test_a_page_begins_at_the_cursor() -> None:
    assert shown(cluster(a=3, b=3), begin=Cursor("a", 1), limit=4) == ([("a", [1, 2]), ("b", [0, 1])], Cursor("b", 2))
    assert shown(cluster(a=3, b=3), begin=Cursor("aa", 1)) == ([("b", [0, 1, 2])], None)


def test_a_cursor_behind_a_topics_last_partition_goes_on_with_the_next_topic() -> None:
    assert shown(cluster(a=2, b=1), begin=Cursor("a", 7)) == ([("a", []), ("b", [0])], None)


@pytest.mark.parametrize("limit", range(1, 9))
def test_pages_together_are_the_whole(limit: int) -> None:
    topics = cluster(a=3, b=1, c=4)
    seen: list[tuple[str, int]] = []
    cursor: Cursor | None = None
    for _ in range(20):
        parts, cursor = shown(topics, begin=cursor, limit=limit)
        assert sum(len(numbers) for _, numbers in parts) <= limit
        seen += [(name, number) for name, numbers in parts for number in numbers]
        if cursor is None:
            break
    assert seen == [(name, number) for name, count in (("a", 3), ("b", 1), ("c", 4)) for number in range(count)]
