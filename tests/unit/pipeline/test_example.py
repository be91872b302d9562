"""The pipeline that init writes."""

from __future__ import annotations

import pytest

from tests.unit.pipeline.samples import model_of
from tidelog.pipeline.example import example


@pytest.mark.parametrize("topic", ["events", "my.topic-1", "9lives"])
def test_it_is_right_for_every_topic(topic: str) -> None:
    model = model_of(example(topic, "localhost:9092"))
    assert model.sources[0].topics == (topic,)
    assert model.sinks[0].kind == "delta"
