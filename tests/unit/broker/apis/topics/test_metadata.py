from __future__ import annotations

from types import CoroutineType
from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing, Permission
from tests.unit.broker.node_world import NOW_MS, NodeWorld, Ready, run
from tidelog.broker.answer_types import Encoded
from tidelog.broker.apis.topics import metadata as module
from tidelog.broker.apis.topics.metadata import metadata, read
from tidelog.broker.apis.topics.metadata_bytes import MAX_KEPT_ANSWERS, Answers
from tidelog.broker.auto_creation import RETRY_MS
from tidelog.broker.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from tidelog.metadata.image import TopicImage
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic


def ask(world: NodeWorld, version: int = 13, listener: str = "EXTERNAL", **fields: Any) -> MetadataResponse:
    request = MetadataRequest(**fields)
    body = b"prefix" + request.encode(version)
    encoded = metadata(world.context(version, listener), read(memoryview(body), 6, version))
    assert isinstance(encoded, Encoded)
    data = b"".join(bytes(part) for part in encoded.parts)  # type: ignore[arg-type]
    assert len(data) == encoded.size
    return MetadataResponse.decode(data, version)


def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


@pytest.mark.parametrize("version", range(14))
def test_a_topic_its_partitions_and_the_brokers_are_described_at_every_version(version: int) -> None:
    world = NodeWorld()
    topic_id = world.create("orders", 2)
    response = ask(world, version, topics=named("orders"))
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "out", 9092)
    assert broker.rack == ("r1" if version >= 1 else None)
    assert response.cluster_id == ("test-cluster" if version >= 2 else None)
    assert response.controller_id == (1 if version >= 1 else -1)
    (topic,) = response.topics
    assert (topic.name, topic.error_code, topic.topic_id) == ("orders", 0, topic_id if version >= 10 else ZERO_UUID)
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert topic.partitions[0].leader_epoch == (0 if version >= 7 else -1)


@pytest.mark.parametrize(("version", "nothing", "everything"), [(0, None, []), (1, [], None), (13, [], None)])
def test_an_empty_list_means_all_in_version_zero_and_none_later(version: int, nothing: Any, everything: Any) -> None:
    world = NodeWorld()
    world.create("a")
    world.create("b")
    assert [topic.name for topic in ask(world, version, topics=everything).topics] == ["a", "b"]
    if nothing is not None:
        assert ask(world, version, topics=nothing).topics == []


def test_each_listener_is_told_its_own_addresses() -> None:
    world = NodeWorld()
    assert [(b.host, b.port) for b in ask(world, listener="INTERNAL", topics=[]).brokers] == [("in", 9093)]
    assert ask(world, listener="UNKNOWN", topics=[]).brokers == []


def test_a_topic_is_found_by_its_id_from_version_twelve_on() -> None:
    world = NodeWorld()
    topic_id = world.create("orders")
    asked = [MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(topic_id=b"?" * 16, name=None)]
    found, unknown = ask(world, 12, topics=asked).topics
    assert (found.name, found.error_code) == ("orders", 0)
    assert (unknown.name, unknown.error_code, unknown.topic_id) == (None, ErrorCode.UNKNOWN_TOPIC_ID, b"?" * 16)
    refused = ask(world, 10, topics=asked[:1]).topics[0]
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_an_unknown_topic_is_created_and_not_available_until_it_is_there() -> None:
    world = NodeWorld({"num.partitions": "1"})
    for _ in range(2):
        (topic,) = ask(world, topics=named("new")).topics
        assert (topic.error_code, topic.partitions) == (ErrorCode.LEADER_NOT_AVAILABLE, [])
    assert len(world.runtime.spawned) == 1
    world.runtime.run_spawned()
    (topic,) = ask(world, topics=named("new")).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 1)
    assert world.broker.topics_being_created == {}


def test_nothing_is_created_for_who_does_not_want_it_or_where_it_is_turned_off() -> None:
    world = NodeWorld()
    (topic,) = ask(world, topics=named("new"), allow_auto_topic_creation=False).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for world, names in ((NodeWorld({"auto.create.topics.enable": "false"}), "new"), (NodeWorld(), "__consumer_offsets")):
        (topic,) = ask(world, topics=named(names)).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.runtime.spawned == []


def test_a_name_that_no_topic_may_have_is_refused() -> None:
    world = NodeWorld()
    topics = ask(world, topics=named("a/b", "x" * 250, "..")).topics
    assert [topic.error_code for topic in topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 3
    assert world.runtime.spawned == []


def test_a_topic_whose_creation_was_refused_is_unknown_until_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    world = NodeWorld()
    world.controller.refuses = KafkaError(ErrorCode.NOT_CONTROLLER)
    ask(world, topics=named("new"))
    world.runtime.run_spawned()
    assert world.broker.topics_being_created == {}
    assert ask(world, topics=named("new")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.controller.refuses = None
    monkeypatch.setattr(world.runtime, "even_ms", lambda: NOW_MS + RETRY_MS)
    assert ask(world, topics=named("new")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.runtime.run_spawned()
    assert ask(world, topics=named("new")).topics[0].error_code == ErrorCode.NONE


def test_only_so_many_topics_are_created_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = NodeWorld()
    monkeypatch.setattr(module, "MAX_BEING_CREATED", 0)
    assert ask(world, topics=named("new")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_answer_is_kept_until_the_image_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = NodeWorld()
    world.create("a")
    first = ask(world, topics=None)
    monkeypatch.setattr(module, "_answer", lambda ctx, request: pytest.fail("made again"))
    assert ask(world, topics=None) == first
    monkeypatch.undo()
    world.create("b")
    assert [topic.name for topic in ask(world, topics=None).topics] == ["a", "b"]


def test_only_so_many_answers_are_kept() -> None:
    answers = Answers()
    image = NodeWorld().broker.image
    assert answers.get(image, (1, "l", b"")) is None
    for number in range(MAX_KEPT_ANSWERS + 1):
        answers.keep((1, "l", bytes([number])), b"x")
    assert answers.get(image, (1, "l", b"\0")) is None
    assert answers.get(image, (1, "l", bytes([MAX_KEPT_ANSWERS]))) == b"x"


def test_a_fenced_broker_is_left_out_and_its_partitions_have_no_leader() -> None:
    world = NodeWorld()
    world.create("t")
    world.change_broker(fenced=True)
    response = ask(world, topics=named("t"))
    partition = response.topics[0].partitions[0]
    assert response.brokers == []
    assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])


@pytest.mark.parametrize(("version", "error"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
def test_a_leader_without_that_listener_is_named_as_such_where_the_client_knows_the_error(version: int, error: int) -> None:
    world = NodeWorld()
    world.create("t")
    response = ask(world, version, listener="UNKNOWN", topics=named("t"))
    assert response.topics[0].partitions[0].error_code == error


def test_operations_are_told_to_who_asks() -> None:
    world = NodeWorld()
    world.create("t")
    asked = ask(world, 10, topics=None, include_cluster_authorized_operations=True, include_topic_authorized_operations=True)
    assert asked.cluster_authorized_operations == CLUSTER_OPERATIONS
    assert asked.topics[0].topic_authorized_operations == TOPIC_OPERATIONS
    silent = ask(world, 10, topics=None)
    assert (silent.cluster_authorized_operations, silent.topics[0].topic_authorized_operations) == (-(1 << 31), -(1 << 31))


def test_a_topic_asked_for_twice_is_answered_once() -> None:
    world = NodeWorld()
    world.create("t")
    assert [topic.name for topic in ask(world, topics=named("t", "t")).topics] == ["t"]


def test_a_body_that_is_none_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        metadata(NodeWorld().context(13), read(memoryview(b"\xff"), 0, 13))


class Large:
    """A cluster that is described three partitions at a time; ``rests`` counts the turns that others have meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "PARTITIONS_AT_ONCE", 3)
        self.rests = 0
        self.described: list[str] = []
        self.world = NodeWorld()
        self.world.runtime.sleep = self._sleep  # type: ignore[attr-defined]
        describer = module._describer

        def counting(*how: Any) -> Any:
            describe = describer(*how)

            def counted(topic: TopicImage) -> MetadataResponseTopic:
                self.described.append(topic.name)
                return describe(topic)

            return counted

        monkeypatch.setattr(module, "_describer", counting)

    def _sleep(self, seconds: float) -> Ready:
        self.rests += 1
        return Ready()

    def ask(self, version: int = 13) -> bytes:
        body = MetadataRequest(topics=None if version else []).encode(version)
        answer = metadata(self.world.context(version), read(memoryview(body), 0, version))
        encoded = run(answer) if isinstance(answer, CoroutineType) else answer
        assert isinstance(encoded, Encoded)
        return b"".join(bytes(part) for part in encoded.parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", range(14))
def test_a_large_cluster_is_described_in_turns_and_the_same_as_at_once(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Large(monkeypatch)
    for name in "abcd":
        large.world.create(name, 2)
    in_turns = large.ask(version)
    assert large.rests == 1
    monkeypatch.setattr(module, "PARTITIONS_AT_ONCE", 1000)
    large.world.broker.metadata_answers = Answers()
    assert in_turns == large.ask(version)
    assert large.rests == 1


def test_only_topics_that_changed_are_described_anew_and_all_when_a_broker_did(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Large(monkeypatch)
    for name in "ab":
        large.world.create(name, 2)
    first = large.ask()
    assert large.described == ["a", "b"] and large.ask() == first and large.described == ["a", "b"]
    large.world.create("c", 2)
    assert [each.name for each in MetadataResponse.decode(large.ask(), 13).topics] == ["a", "b", "c"]
    assert large.described == ["a", "b", "c"]
    large.world.change_broker(rack="r2")
    large.ask()
    assert large.described == ["a", "b", "c"] * 2


def describing(*names: str, also: tuple[Permission, ...] = ()) -> Allowing:
    """A client that may describe these topics, and has these permissions."""
    return Allowing({(AclOperation.DESCRIBE, ResourceType.TOPIC, name) for name in names} | set(also))


CREATE_ANY: Permission = (AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)


@pytest.mark.parametrize("version", range(14))
def test_a_topic_that_is_named_is_refused_without_describe_whether_it_exists_or_not(version: int) -> None:
    world = NodeWorld()
    for name in ("seen", "hidden"):
        world.create(name)
    world.broker.access = describing("seen")
    response = ask(world, version, topics=named("hidden", "seen", "missing", "not a name"))
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "hidden": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "seen": 0,
        "missing": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "not a name": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    denied = [topic for topic in response.topics if topic.error_code]
    assert all((topic.topic_id, topic.partitions, topic.is_internal) == (ZERO_UUID, [], False) for topic in denied)
    assert not world.runtime.spawned and not world.broker.topics_being_created


def test_a_topic_that_is_asked_for_by_id_is_refused_without_its_name() -> None:
    world = NodeWorld()
    seen, hidden = world.create("seen"), world.create("hidden")
    world.broker.access = describing("seen")
    ids = [MetadataRequestTopic(topic_id=each, name=None) for each in (seen, hidden, b"?" * 16)]
    answers = [(each.name, each.topic_id, each.error_code) for each in ask(world, topics=ids).topics]
    assert answers == [
        ("seen", seen, 0),
        (None, hidden, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (None, b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize("version", [0, 1, 13])
def test_of_all_topics_those_without_describe_are_left_out_in_silence(version: int) -> None:
    world = NodeWorld()
    for name in ("a", "b", "c"):
        world.create(name)
    access = world.broker.access = describing("a", "c")
    assert [topic.name for topic in ask(world, version, topics=None if version else []).topics] == ["a", "c"]
    assert not access.loud


def test_an_answer_that_is_kept_is_never_given_to_a_client_that_may_see_less() -> None:
    world = NodeWorld()
    for name in ("a", "b"):
        world.create(name)
    for topics in (None, named("a", "b")):
        world.broker.access = describing("a", "b")
        assert [topic.error_code for topic in ask(world, topics=topics).topics] == [0, 0]
        assert [topic.error_code for topic in ask(world, topics=topics).topics] == [0, 0]
        world.broker.access = describing("a")
        assert [topic.name for topic in ask(world, topics=topics).topics if not topic.error_code] == ["a"]
        world.broker.access = describing("a", "b")
        assert [topic.error_code for topic in ask(world, topics=topics).topics] == [0, 0]


def test_clients_that_see_the_same_share_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    world = NodeWorld()
    world.create("a")
    world.create("b")
    world.broker.access = describing("a")
    first = ask(world, topics=named("a"))
    monkeypatch.setattr(module, "_answer", lambda *what: pytest.fail("the answer is there already"))
    assert ask(world, topics=named("a")) == first


def test_authorized_operations_are_those_of_the_client() -> None:
    world = NodeWorld()
    world.create("a")
    read_bits, describe_bits = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE, 1 << AclOperation.DESCRIBE
    asked = {"topics": named("a", "missing", "hidden"), "include_topic_authorized_operations": True}
    asked["allow_auto_topic_creation"] = False
    reading: Permission = (AclOperation.READ, ResourceType.TOPIC, "a")
    for access, bits in ((describing("a", "missing", also=(reading,)), read_bits), (describing("a", "missing"), describe_bits)):
        world.broker.access = access
        operations = {each.name: each.topic_authorized_operations for each in ask(world, **asked).topics}
        assert operations == {"a": bits, "missing": describe_bits, "hidden": NOT_ASKED}


@pytest.mark.parametrize("version", [8, 9, 10])
def test_operations_on_the_cluster_are_shown_only_with_describe_on_it(version: int) -> None:
    world = NodeWorld()
    asked = {"topics": [], "include_cluster_authorized_operations": True}
    describe = (AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    world.broker.access = Allowing({CREATE_ANY})
    assert ask(world, version, **asked).cluster_authorized_operations == 0
    world.broker.access = Allowing({CREATE_ANY, describe})
    bits = 1 << AclOperation.CREATE | 1 << AclOperation.DESCRIBE
    assert ask(world, version, **asked).cluster_authorized_operations == bits
    assert ask(world, version, topics=[]).cluster_authorized_operations == NOT_ASKED


def test_a_missing_topic_is_created_only_for_a_client_that_may_create_it() -> None:
    world = NodeWorld()
    may_create: Permission = (AclOperation.CREATE, ResourceType.TOPIC, "b")
    access = world.broker.access = describing("a", "b", also=(may_create,))
    asked = {"topics": named("a", "b", "c")}
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    answers = {each.name: each.error_code for each in ask(world, **asked).topics}
    assert answers == {"a": denied, "b": ErrorCode.LEADER_NOT_AVAILABLE, "c": denied}
    assert (AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME) not in access.loud
    assert (AclOperation.CREATE, ResourceType.TOPIC, "a") in access.loud
    world.runtime.run_spawned()
    assert set(world.broker.image.topics.by_name) == {"b"}
    assert {each.name: each.error_code for each in ask(world, **asked).topics} == {"a": denied, "b": 0, "c": denied}
    world.broker.access = describing("a", also=(CREATE_ANY,))
    assert [each.error_code for each in ask(world, topics=named("a")).topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
    world.runtime.run_spawned()
    assert set(world.broker.image.topics.by_name) == {"a", "b"}


def test_without_auto_creation_a_missing_topic_needs_no_create() -> None:
    world = NodeWorld()
    world.broker.access = describing("a")
    answer = ask(world, topics=named("a"), allow_auto_topic_creation=False)
    assert [each.error_code for each in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_refusal_of_all_topics_names_only_visible_ones() -> None:
    world = NodeWorld()
    for name in ("a", "b"):
        world.create(name)
    world.broker.access = describing("b")
    body = MetadataRequest(topics=None).encode(13)
    answer = module.refuse(world.context(13), read(memoryview(body), 0, 13), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert [topic.name for topic in answer.topics] == ["b"]

    class Failing(Allowing):
        def allows(self, *question: Any) -> bool:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the ACLs are not known yet")

    world.broker.access = Failing()
    answer = module.refuse(world.context(13), read(memoryview(body), 0, 13), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert (answer.topics, answer.error_code) == ([], ErrorCode.UNKNOWN_SERVER_ERROR)


def test_a_large_cluster_is_described_in_turns_to_a_client_that_sees_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Large(monkeypatch)
    for number in range(5):
        large.world.create(f"t{number}", 2)
    everything = large.ask()
    large.world.broker.access = describing("t1", "t4")
    visible = MetadataResponse.decode(large.ask(), 13)
    assert [topic.name for topic in visible.topics] == ["t1", "t4"]
    large.world.broker.access = describing(*(f"t{number}" for number in range(5)))
    assert large.ask() == everything
