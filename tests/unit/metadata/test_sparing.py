from __future__ import annotations

import pytest

from tidelog.metadata.image import ClusterImage, PartitionImage, TopicImage, TopicsImage
from tidelog.metadata.sparing import sparing
from tidelog.model.ids import Uuid


def judged(replicas: tuple[int, ...], isr: tuple[int, ...], least: int) -> tuple[int, int]:
    """Of broker 1, with one partition."""
    topic = TopicImage(Uuid(bytes(16)), "t", (PartitionImage(replicas, isr, isr[0]),))
    image = ClusterImage(topics=TopicsImage({topic.id: topic}, {"t": topic}))
    return tuple(sparing(image, 1, {"t": least}.__getitem__))


@pytest.mark.parametrize(
    ("replicas", "isr", "least", "told"),
    [
        ((1, 2, 3), (1, 2, 3), 2, (0, 0)),
        ((1, 2, 3), (1, 2), 2, (0, 1)),
        ((1, 2, 3), (2, 3), 2, (1, 0)),
        ((1, 2), (1, 2), 2, (0, 0)),  # two others do not exist
        ((1, 2), (1,), 1, (0, 1)),
        ((1,), (1,), 1, (0, 0)),  # unavailable meanwhile, however long one waits
        ((2, 3), (2,), 2, (0, 0)),
    ],
)
def test_a_broker_is_needed_where_waiting_helps(
    replicas: tuple[int, ...], isr: tuple[int, ...], least: int, told: tuple[int, int]
) -> None:
    assert judged(replicas, isr, least) == told
