"""Appends and reads with retries, over answers by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tidelog.client.failures import NoConnection
from tidelog.client.settings import parse_settings
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.registry.errors import RegistryError
from tidelog.registry.serving import log as log_module
from tidelog.registry.serving import topic
from tidelog.registry.serving.log import SchemaLog

PLACE = topic.Place("_schemas", b"\1" * 16, 3)
RECORDS: list[topic.KeyValue] = [(b"k", b"v"), (b"l", None)]


class Cluster:
    """Answers calls by the name of their function; what is listed under a name is returned or raised in order."""

    def __init__(self, **answers: list[Any]) -> None:
        self.settings = parse_settings({"bootstrap.servers": "localhost:1"})
        self._answers = {"locate": [PLACE] * 9, "begin": [topic.Producer(7, 0), topic.Producer(8, 0)], **answers}
        self.asked: list[str] = []

    async def run(self, call: Any) -> Any:
        name = call.gi_code.co_name
        self.asked.append(name)
        call.close()
        found = self._answers[name].pop(0)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "PAUSE_S", 0)


def run(cluster: Cluster, work: Callable[[SchemaLog], Any]) -> Any:
    async def main() -> Any:
        client: Any = cluster
        return await work(SchemaLog(client, client, "_schemas", None, lambda: 5))

    return asyncio.run(main())


def test_an_append_is_tried_until_the_leader_takes_it() -> None:
    cluster = Cluster(append=[NoConnection("gone", sent=True), (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1), (ErrorCode.NONE, 12)])
    assert run(cluster, lambda log: log.append(RECORDS)) == 12
    assert cluster.asked == ["begin", *("locate", "append") * 3]


def test_a_batch_that_was_there_already_has_no_offset() -> None:
    cluster = Cluster(append=[NoConnection("gone", sent=True), (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)])
    assert run(cluster, lambda log: log.append(RECORDS)) == -1


def test_a_schema_that_the_topic_does_not_take_is_too_large() -> None:
    with pytest.raises(RegistryError) as caught:
        run(Cluster(append=[(ErrorCode.MESSAGE_TOO_LARGE, -1)]), lambda log: log.append(RECORDS))
    assert caught.value.code == 42209


def test_a_producer_that_the_broker_forgot_begins_again_with_the_next_append() -> None:
    cluster = Cluster(append=[(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1), (ErrorCode.NONE, 3)])

    async def twice(log: SchemaLog) -> int:
        with pytest.raises(RegistryError) as caught:
            await log.append(RECORDS)
        assert caught.value.code == 50001
        return await log.append(RECORDS)

    assert run(cluster, twice) == 3
    assert cluster.asked.count("begin") == 2


def test_a_topic_that_may_not_be_written_is_said() -> None:
    with pytest.raises(RegistryError, match="TOPIC_AUTHORIZATION_FAILED"):
        run(Cluster(append=[(ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)]), lambda log: log.append(RECORDS))


def test_reading_retries_what_passes_and_raises_the_rest() -> None:
    batch = topic.ReadBatch([], 4)
    passing = [NoConnection("gone"), KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved"), batch]
    cluster = Cluster(read=passing)
    assert run(cluster, lambda log: log.read(0)) == batch
    assert cluster.asked.count("locate") == 3
    with pytest.raises(KafkaError):
        run(Cluster(read=[KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "cut")]), lambda log: log.read(0))
