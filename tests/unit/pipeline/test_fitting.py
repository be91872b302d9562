"""Parts that do not fit together are all named, and a part that cannot be read is still a name."""

from __future__ import annotations

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError


def mistakes(*changes: tuple[str, str]) -> list[str]:
    text = RIDES
    for right, wrong in changes:
        assert right in text
        text = text.replace(right, wrong, 1)
    with pytest.raises(ConfigError) as caught:
        model_of(text)
    return str(caught.value).splitlines()


def test_every_name_that_is_not_there_is_told() -> None:
    found = mistakes(("from: rides\n", "from: ridse\n"), ("from: silver, path", "from: gold, path"))
    assert [line.partition(": no source")[0] for line in found] == [
        "rides.yaml, line 10: transforms.silver.from",
        "rides.yaml, line 16: sinks.silver.from",
    ]


def test_a_part_that_cannot_be_read_is_not_missing_too() -> None:
    (found,) = mistakes(("topics: [rides]", "topics: []"))
    assert "sources.rides.topics: must be a list of texts" in found
    (found,) = mistakes(("quarantine: {type: delta, path", "quarantine: {type: delat, path"))
    assert "quarantine.type: 'delat' is none of" in found


def test_a_circle_is_told_beside_the_rest() -> None:
    found = mistakes(("from: rides\n", "from: silver\n"), ("type: delta, from: rides", "type: delta, from: nothing"))
    assert "silver depend on each other in a cycle" in found[0] and "'nothing'" in found[1]
