"""How far a pipeline is, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.status import rows_of
from tidelog.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


def test_each_partition_has_its_offset_and_lag(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 2)
    broker.produce("rides", "a", "b", "c", partition=0)
    text = RIDES.replace("localhost:9092", broker.bootstrap_servers)
    text = text.replace("pipeline: rides\n", f"pipeline: rides\ncheckpoint: {tmp_path}\n")
    assert [(row["batch"], row["offset"], row["end"], row["lag"]) for row in rows_of(model_of(text))] == [
        ("-", "-", 3, "-"),
        ("-", "-", 0, "-"),
    ]
    query = tmp_path / "source-rides"
    for folder, name, content in (
        ("offsets", "0", 'v1\n{}\n{"rides": {"0": 1, "1": 0}}'),
        ("commits", "0", "v1\n{}"),
    ):
        (query / folder).mkdir(parents=True, exist_ok=True)
        (query / folder / name).write_text(content)
    assert [(row["batch"], row["offset"], row["end"], row["lag"]) for row in rows_of(model_of(text))] == [
        (0, 1, 3, 2),
        (0, 0, 0, 0),
    ]


def test_a_checkpoint_elsewhere_is_told() -> None:
    text = RIDES.replace("pipeline: rides\n", "pipeline: rides\ncheckpoint: s3a://bucket/x\n")
    with pytest.raises(ConfigError, match="not on this machine"):
        rows_of(model_of(text))
