"""confluent-kafka's serializers and registry client, end to end through a broker and the registry."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import DeserializingConsumer, Message, SerializingProducer, TopicPartition
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.schema_registry_client import ConfigCompatibilityLevel, ServerConfig
from confluent_kafka.serialization import SerializationError, StringDeserializer, StringSerializer
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tidelog.testing import Broker, SchemaRegistry
from tidelog.testing.schema_registry.server import MAX_BODY

USER = {
    "type": "record",
    "name": "User",
    "namespace": "shop",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"], "default": None}],
}
USER_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "User",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as running:
        yield running


@pytest.fixture
def client(registry: SchemaRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


@pytest.fixture
def through(broker: Broker) -> Callable[..., Message]:
    """Sends one value through the broker, serialized and deserialized."""

    def send(serializer: Any, deserializer: Any, value: Any) -> Message:
        broker.reset()
        producer = SerializingProducer(
            {"bootstrap.servers": broker.bootstrap_servers, "key.serializer": StringSerializer(), "value.serializer": serializer}
        )
        producer.produce("users", key="k", value=value)
        assert producer.flush(10) == 0
        consumer = DeserializingConsumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "g",
                "key.deserializer": StringDeserializer(),
                "value.deserializer": deserializer,
            }
        )
        consumer.assign([TopicPartition("users", 0, 0)])
        message = consumer.poll(15)
        consumer.close()
        assert message is not None
        return message

    return send


def test_avro(registry: SchemaRegistry, client: SchemaRegistryClient, broker: Broker, through: Callable[..., Message]) -> None:
    value = {"name": "Ada", "age": 36}
    assert through(AvroSerializer(client, json.dumps(USER)), AvroDeserializer(client), value).value() == value
    assert registry.subjects == ["users-value"]
    assert json.loads(registry.schema("users-value")) == USER
    (raw,) = broker.messages("users")
    assert raw.value is not None
    assert raw.value[:5] == b"\0\0\0\0\1"


def test_avro_is_read_with_a_newer_schema(client: SchemaRegistryClient, through: Callable[..., Message]) -> None:
    newer = {**USER, "fields": [*USER["fields"], {"name": "city", "type": "string", "default": "?"}]}
    deserializer = AvroDeserializer(client, json.dumps(newer))
    read = through(AvroSerializer(client, json.dumps(USER)), deserializer, {"name": "Ada", "age": None}).value()
    assert read == {"name": "Ada", "age": None, "city": "?"}


def test_json_schema(registry: SchemaRegistry, client: SchemaRegistryClient, through: Callable[..., Message]) -> None:
    value = {"name": "Ada", "age": 36}
    text = json.dumps(USER_JSON)
    assert through(JSONSerializer(text, client), JSONDeserializer(text), value).value() == value
    assert client.get_latest_version("users-value").schema.schema_type == "JSON"
    with pytest.raises(SerializationError):
        through(JSONSerializer(text, client), JSONDeserializer(text), {"age": 36})


def message_class() -> Any:
    """A message type as protoc would make it, with a type of another file in it."""
    string, integer, inner = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_INT32, FieldDescriptorProto.TYPE_MESSAGE
    pool = DescriptorPool()
    town = FileDescriptorProto(name="town.proto", package="shop", syntax="proto3")
    code = FieldDescriptorProto(name="zip", number=1, type=string, label=1)
    town.message_type.append(DescriptorProto(name="Town", field=[code]))
    user = FileDescriptorProto(name="user.proto", package="shop", syntax="proto3", dependency=["town.proto"])
    fields = [
        FieldDescriptorProto(name="name", number=1, type=string, label=1),
        FieldDescriptorProto(name="age", number=2, type=integer, label=1),
        FieldDescriptorProto(name="town", number=3, type=inner, type_name=".shop.Town", label=1),
    ]
    user.message_type.append(DescriptorProto(name="User", field=fields))
    for file in (town, user):
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("shop.User"))


def test_protobuf_with_a_reference(
    registry: SchemaRegistry, client: SchemaRegistryClient, through: Callable[..., Message]
) -> None:
    user = message_class()
    value = user(name="Ada", age=36)
    value.town.zip = "1010"
    settings = {"use.deprecated.format": False}
    serializer, deserializer = ProtobufSerializer(user, client, settings), ProtobufDeserializer(user, settings, client)
    read = through(serializer, deserializer, value).value()
    assert (read.name, read.age, read.town.zip) == ("Ada", 36, "1010")
    assert registry.subjects == ["town.proto", "users-value"]
    latest = client.get_latest_version("users-value")
    references = [(each.name, each.subject, each.version) for each in latest.schema.references or []]
    assert references == [("town.proto", "town.proto", 1)]
    assert client.get_referenced_by("town.proto", 1) == [latest.schema_id]


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [(record_subject_name_strategy, "shop.User"), (topic_record_subject_name_strategy, "users-shop.User")],
)
def test_subject_name_strategies(
    strategy: Any, subject: str, registry: SchemaRegistry, client: SchemaRegistryClient, through: Callable[..., Message]
) -> None:
    serializer = AvroSerializer(client, json.dumps(USER), conf={"subject.name.strategy": strategy})
    through(serializer, AvroDeserializer(client), {"name": "Ada", "age": 1})
    assert registry.subjects == [subject]


def test_avro_references_and_normalizing(
    registry: SchemaRegistry, client: SchemaRegistryClient, through: Callable[..., Message]
) -> None:
    client.register_schema("user", Schema(json.dumps(USER), "AVRO"))
    order = {"type": "record", "name": "Order", "fields": [{"name": "by", "type": "shop.User"}]}
    schema = Schema(json.dumps(order), "AVRO", [SchemaReference("shop.User", "user", 1)])
    serializer = AvroSerializer(client, schema, conf={"normalize.schemas": True})
    value = {"by": {"name": "Ada", "age": 36}}
    assert through(serializer, AvroDeserializer(client), value).value() == value
    assert client.get_referenced_by("user", 1) == [2]


def test_without_registering_the_latest_or_the_known_schema_is_used(
    registry: SchemaRegistry, client: SchemaRegistryClient, through: Callable[..., Message]
) -> None:
    frozen = {"auto.register.schemas": False}
    value = {"name": "Ada", "age": 1}
    with pytest.raises(SerializationError, match="40401"):
        through(AvroSerializer(client, json.dumps(USER), conf=frozen), AvroDeserializer(client), value)
    assert registry.register("users-value", USER) == 1
    assert through(AvroSerializer(client, json.dumps(USER), conf=frozen), AvroDeserializer(client), value).value() == value
    latest = frozen | {"use.latest.version": True}
    assert through(AvroSerializer(client, None, conf=latest), AvroDeserializer(client), value).value() == value


def test_an_incompatible_schema_is_refused_and_the_level_can_be_changed(
    registry: SchemaRegistry, client: SchemaRegistryClient
) -> None:
    registry.register("s", USER)
    other = Schema('"int"', "AVRO")
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("s", other)
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)
    assert client.test_compatibility("s", other) is False
    assert client.get_compatibility() == "BACKWARD"
    client.set_compatibility("s", "NONE")
    assert client.get_compatibility("s") == "NONE"
    assert client.register_schema("s", other) == 2
    client.set_config("s", ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_config("s").compatibility_level is ConfigCompatibilityLevel.FULL


def test_the_clients_other_calls(registry: SchemaRegistry, client: SchemaRegistryClient) -> None:
    for subject in ("a", "b"):
        client.register_schema(subject, Schema(json.dumps(USER), "AVRO"))
    assert client.get_subjects() == ["a", "b"]
    assert client.get_subjects_by_schema_id(1) == ["a", "b"]
    assert [(each.subject, each.version) for each in client.get_schema_versions(1)] == [("a", 1), ("b", 1)]
    assert client.lookup_schema("a", Schema(json.dumps(USER), "AVRO")).version == 1
    guid = client.get_version("a", 1).guid
    assert guid is not None
    assert json.loads(client.get_schema_by_guid(guid).schema_str or "") == USER
    assert client.get_schema_types() == ["AVRO", "JSON", "PROTOBUF"]
    assert client.get_contexts() == ["."]
    assert client.delete_version("a", 1) == 1
    assert client.delete_subject("b") == [1]
    assert client.delete_subject("b", permanent=True) == [1]
    assert client.get_global_mode() == "READWRITE"
    assert client.update_mode("a", "READONLY") == client.get_mode("a") == "READONLY"
    with pytest.raises(SchemaRegistryError) as caught:
        client.get_version("a", 1)
    assert caught.value.error_code == 40401


def test_refusals_on_demand_and_reset(registry: SchemaRegistry) -> None:
    client = SchemaRegistryClient({"url": registry.url, "max.retries": 0})
    registry.register("s", USER)
    registry.refuse(500, 50001, times=2)
    for _ in range(2):
        with pytest.raises(SchemaRegistryError) as caught:
            client.get_subjects()
        assert (caught.value.http_status_code, caught.value.error_code) == (500, 50001)
    assert client.get_subjects() == ["s"]
    registry.reset()
    assert client.get_subjects() == []
    with pytest.raises(ValueError, match=r"s.*There are: none"):
        registry.schema("s")


def test_mistakes_of_the_test_are_told(registry: SchemaRegistry) -> None:
    with pytest.raises(ValueError, match=r"s: Invalid schema.*42201"):
        registry.register("s", {"type": "record"})
    with pytest.raises(RuntimeError, match="runs already"):
        registry.start()
    with pytest.raises(RuntimeError, match="does not run"):
        _ = SchemaRegistry().url
    with pytest.raises(Exception, match="NONE, BACKWARD"):
        SchemaRegistry(compatibility="SOME")


def test_it_can_be_stopped_under_its_clients_and_started_again(registry: SchemaRegistry) -> None:
    connection = http.client.HTTPConnection(registry.url.removeprefix("http://"), timeout=10)
    connection.request("GET", "/subjects")
    assert connection.getresponse().read() == b"[]"
    registry.register("s", USER)
    registry.stop()
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        connection.request("GET", "/subjects")
        connection.getresponse()
    connection.close()
    registry.start()
    with urllib.request.urlopen(f"{registry.url}/subjects", timeout=10) as answer:
        assert answer.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"
        assert json.load(answer) == ["s"]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Length": str(MAX_BODY + 1)}, None, 413),
        ({"Content-Length": "x"}, None, 400),
        ({"Transfer-Encoding": "chunked"}, None, 411),
        ({}, b"{", 400),
        ({}, b"[" * 100_000, 400),
        ({}, b"[]", 400),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(
    headers: dict[str, str], body: bytes | None, status: int, registry: SchemaRegistry
) -> None:
    connection = http.client.HTTPConnection(registry.url.removeprefix("http://"), timeout=10)
    connection.putrequest("POST", "/subjects/s/versions")
    for name, value in (headers or {"Content-Length": str(len(body or b""))}).items():
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    assert answer.status == status
    assert "error_code" in json.load(answer)
    connection.close()


def test_head_has_no_body(registry: SchemaRegistry) -> None:
    request = urllib.request.Request(f"{registry.url}/subjects", method="HEAD")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert (answer.status, answer.read()) == (200, b"")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{registry.url}/nothing", timeout=10)


def test_a_bug_of_the_registry_is_told_and_does_not_look_like_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(registry: SchemaRegistry, request: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(SchemaRegistry, "serve", fail)
    with SchemaRegistry() as registry, pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(f"{registry.url}/subjects")
    assert told.value.code == 500
    assert json.load(told.value) == {"error_code": 50001, "message": "ZeroDivisionError: a bug"}
