"""A pipeline on a cluster with TLS, logins and ACLs: with the least rights, and with one too few."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.world import Lake
from tidelog.client.failures import NotAuthenticated
from tidelog.pipeline.failures import PipelineFailure, sentence
from tidelog.spark.cluster import TopicMissing
from tidelog.testing import Broker, allow

PIPELINE = """\
pipeline: rides
kafka: KAFKA
checkpoint: FOLDER/checkpoints
sources: {rides: {topics: [rides], value: text}}
sinks: {rides: {type: delta, from: rides, path: FOLDER/rides}}
"""
READ, GROUP = allow("ann", "read", topic="rides"), allow("ann", "read", group="tidelog-pipeline-rides")


@pytest.fixture
def secured() -> Iterator[Broker]:
    with Broker(users={"ann": "ann-secret"}, acls=[READ, GROUP], tls=True) as found:
        yield found


def lake(spark: Any, broker: Broker, folder: Path, mechanism: str = "SCRAM-SHA-512") -> Lake:
    kafka = broker.access.java_settings("ann", mechanism)
    return Lake(spark, "", folder, PIPELINE.replace("KAFKA", json.dumps(kafka)))


def test_a_pipeline_needs_read_on_its_topic_and_on_its_group(spark: Any, secured: Broker, tmp_path: Path) -> None:
    secured.create_topic("rides", 1)
    secured.produce("rides", "a", "b")
    first = lake(spark, secured, tmp_path)
    assert first.run().records == 2
    assert [line for line in first.lines if "not committed" in line] == []
    assert secured.committed_offsets("tidelog-pipeline-rides") == {("rides", 0): 2}
    # Without the group it works, and says why lag tools see nothing new.
    secured.access.set_acls([READ])
    secured.produce("rides", "c")
    second = lake(spark, secured, tmp_path, "PLAIN")
    assert second.run().records == 1
    (line,) = [line for line in second.lines if "not committed" in line]
    assert "GROUP_AUTHORIZATION_FAILED" in line
    assert second.values("rides", "value") == ["a", "b", "c"]
    # Without the topic, or with a wrong password, it ends before it has begun.
    secured.access.set_acls([])
    with pytest.raises(TopicMissing) as missing:
        lake(spark, secured, tmp_path).run()
    assert "kafka-acls --add --allow-principal User:ann --operation Read --topic rides" in sentence(missing.value)
    third = lake(spark, secured, tmp_path)
    third.change("ann-secret", "not-my-secret")
    with pytest.raises(NotAuthenticated) as refused:
        third.run()
    assert "Check sasl.username and sasl.password" in sentence(refused.value)


def test_a_right_that_is_taken_from_a_running_pipeline_ends_it(spark: Any, secured: Broker, tmp_path: Path) -> None:
    secured.create_topic("rides", 1)
    secured.produce("rides", "a")
    running = lake(spark, secured, tmp_path)
    made = running.made()

    def take_back(*_: Any) -> None:
        secured.access.set_acls([GROUP])
        secured.produce("rides", "b")

    made._watch = take_back
    with pytest.raises(PipelineFailure, match="--allow-principal User:ann --operation Read --topic rides"):
        made.run(once=False)
