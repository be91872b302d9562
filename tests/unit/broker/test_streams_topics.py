"""Internal topics of streams groups: asked for once, and not again while a refusal is remembered."""

from __future__ import annotations

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

from tidelog.broker.ports import Asker
from tidelog.broker.streams_topics import InternalStreamsTopics
from tidelog.coordinator.group.streams.topology import InternalTopic
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from tidelog.security.principal import ANONYMOUS

ASKER = Asker(ANONYMOUS, "client", "127.0.0.1")
TOPICS = {name: InternalTopic(name, 3, -1, {"retention.ms": "-1"}) for name in ("a", "b")}


class Node:
    """Tasks run when the test says so; the controller answers with an error for each topic, or not at all."""

    def __init__(self) -> None:
        self.now = 0
        self.asked: list[tuple[CreateTopicsRequest, Asker]] = []
        self.errors: dict[str, tuple[ErrorCode, str | None]] = {}
        self.fails: KafkaError | None = None
        self.waiting: list[Coroutine[Any, Any, Any]] = []
        self.config = SimpleNamespace(request_timeout_ms=5)
        self.runtime = SimpleNamespace(even_ms=lambda: self.now, spawn=lambda job, name: self.waiting.append(job))
        self.quotas = SimpleNamespace(mutations=lambda *args, **named: None)
        self.controller = SimpleNamespace(submit=self.submit)

    async def submit(self, handler: object, request: CreateTopicsRequest, version: object, asker: Asker) -> CreateTopicsResponse:
        self.asked.append((request, asker))
        if self.fails is not None:
            raise self.fails
        results = []
        for topic in request.topics:
            code, text = self.errors.get(topic.name, (ErrorCode.NONE, None))
            results.append(CreatableTopicResult(name=topic.name, error_code=code, error_message=text))
        return CreateTopicsResponse(topics=results)

    def run(self) -> None:
        while self.waiting:
            job = self.waiting.pop()
            try:
                job.send(None)
            except StopIteration:
                continue
            raise AssertionError("nothing waits here")


def test_topics_under_way_are_not_asked_for_again() -> None:
    node: Any = Node()
    topics = InternalStreamsTopics()
    topics.create(node, ASKER, TOPICS, 10)
    topics.create(node, ASKER, TOPICS, 10)
    node.run()
    ((request, asker),) = node.asked
    assert asker is ASKER
    assert [(each.name, each.num_partitions, each.replication_factor) for each in request.topics] == [("a", 3, -1), ("b", 3, -1)]
    assert [(each.name, each.value) for each in request.topics[0].configs] == [("retention.ms", "-1")]
    topics.create(node, ASKER, TOPICS, 10)
    assert len(node.waiting) == 1, "they may have been deleted"
    node.run()


def test_a_refusal_is_remembered_for_a_while() -> None:
    node: Any = Node()
    topics = InternalStreamsTopics()
    node.errors = {"a": (ErrorCode.POLICY_VIOLATION, "no"), "b": (ErrorCode.TOPIC_ALREADY_EXISTS, None)}
    topics.create(node, ASKER, TOPICS, 10)
    node.run()
    assert topics.refused(TOPICS, 9) == {"a": "no"}
    node.now = 9
    topics.create(node, ASKER, TOPICS, 10)
    node.run()
    assert [[each.name for each in request.topics] for request, _ in node.asked] == [["a", "b"], ["b"]]
    node.now, node.errors = 10, {}
    topics.create(node, ASKER, TOPICS, 10)
    node.run()
    assert (len(node.asked), topics.refused(TOPICS, 10)) == (3, {})


def test_a_controller_that_refuses_the_whole_request_is_remembered_too() -> None:
    node: Any = Node()
    topics = InternalStreamsTopics()
    node.fails = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no leader")
    topics.create(node, ASKER, TOPICS, 10)
    node.run()
    assert topics.refused(TOPICS, 5) == {"a": "no leader", "b": "no leader"}
