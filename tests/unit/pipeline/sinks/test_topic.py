"""A pipeline's topic sink without a JVM: how identities are stored, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import PipelineModel, SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError
from tidelog.pipeline.sinks.topic import TopicSink, make, pack, unpack
from tidelog.spark.committing import MAX_METADATA, MAX_PIECES
from tidelog.spark.sink_options import parse_sink_options
from tidelog.spark.topic_sink import commit
from tidelog.testing import Broker


def identity(partitions: int = 2, batch_id: int = 3, start: int = 5) -> BatchIdentity:
    ranges = tuple(OffsetRange("t", "id", p, start + p * 7919, start + p * 104729) for p in range(partitions))
    return BatchIdentity("p", "s", batch_id, ranges)


@pytest.mark.parametrize("partitions", [0, 2, 60, 1000])
def test_an_identity_comes_back_as_it_was(partitions: int) -> None:
    text = pack(identity(partitions))
    assert len(text) <= MAX_METADATA * MAX_PIECES
    assert unpack(text) == identity(partitions)


def test_one_that_is_too_long_is_told_before_anything_is_written() -> None:
    with pytest.raises(SinkError, match="read 9000 partitions, more than fit"):
        pack(identity(9000))


@pytest.mark.parametrize("text", ["", "x", "z:!!", "{}", "z:"])
def test_what_is_not_ours_is_none(text: str) -> None:
    assert unpack(text) is None


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("out")
        yield found


def sink(broker: Broker, **more: str) -> TopicSink:
    return TopicSink({"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out", **more}, "p", "s")


class Batch:
    """Stands for a DataFrame: what is asked of its writer reaches the driver's half, without rows."""

    def __init__(self) -> None:
        self.write = self
        self.saved = 0

    def format(self, name: str) -> Batch:
        assert name == "tidelog"
        return self

    def options(self, **given: str) -> Batch:
        self.given = given
        return self

    def mode(self, name: str) -> Batch:
        assert name == "append"
        return self

    def save(self) -> None:
        self.saved += 1
        chosen = parse_sink_options(self.given, streaming=False)
        commit(chosen, chosen.app, chosen.version, [])


def test_a_batch_is_written_once_and_remembered(broker: Broker) -> None:
    assert sink(broker).last_committed() is None
    batch: Any = Batch()
    for _ in range(2):
        sink(broker).write(batch, identity())
    assert batch.saved == 1
    assert sink(broker).committed(identity())
    assert not sink(broker).committed(identity(batch_id=4))
    assert sink(broker).last_committed() == identity()
    sink(broker).write(batch, identity(batch_id=4))
    assert sink(broker).committed(identity())
    assert sink(broker).last_committed() == identity(batch_id=4)


def test_the_same_number_with_other_offsets_is_another_pipeline(broker: Broker) -> None:
    sink(broker).write(Batch(), identity())
    with pytest.raises(SinkError, match="another pipeline is named p and has a sink s"):
        sink(broker).write(Batch(), identity(start=6))


def test_options_that_the_pipeline_sets_and_unknown_ones_are_refused(broker: Broker) -> None:
    with pytest.raises(ConfigError, match="is set by the pipeline"):
        sink(broker, txnAppId="x")
    with pytest.raises(ConfigError, match="Did you mean"):
        sink(broker, inlineByte="x")


def test_a_cluster_that_does_not_answer_is_told(broker: Broker) -> None:
    found = sink(broker, **{"kafka.default.api.timeout.ms": "20", "kafka.retry.backoff.ms": "1"})
    broker.stop()
    with pytest.raises(SinkError, match=r"cannot tell the last batch of the sink s"):
        found.last_committed()


def test_a_number_that_others_wrote_is_told(broker: Broker) -> None:
    told = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out", "txnAppId": "p:s", "txnVersion": "0"}
    commit(parse_sink_options(told, streaming=False), "p:s", 0, [])
    with pytest.raises(SinkError, match="another client commits to that group"):
        sink(broker).last_committed()


def test_a_sink_of_a_model_has_the_pipelines_cluster_and_not_what_is_for_readers(broker: Broker) -> None:
    kafka = (("bootstrap.servers", broker.bootstrap_servers), ("fetch.min.bytes", "5"))
    model = PipelineModel(name="p", kafka=kafka, sources=(), sinks=())
    spec = SinkSpec("s", "topic", options=(("topic", "out"), ("kafka.compression.type", "lz4")))
    made = make(spec, model)
    made.write(Batch(), identity())
    assert sink(broker).last_committed() == identity()
