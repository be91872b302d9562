"""``tidelog registry`` over a real node, with confluent-kafka's client and serializers, killed and started again."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tests.certificates import Authority
from tests.node.registry_process import RegistryProcess, registry
from tests.unit.cli.running_node import running_node

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]}
JSON_ORDER = {"title": "Order", "type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_node(Path(tmp_path_factory.mktemp("registry")), **{"group.initial.rebalance.delay.ms": "0"}) as found:
        yield found


@pytest.fixture
def running(servers: str, request: pytest.FixtureRequest) -> Iterator[RegistryProcess]:
    name = "_schemas_" + "".join(each if each.isalnum() else "_" for each in request.node.name)
    with registry(servers, "--topic", name) as process:
        process.topic = name  # type: ignore[attr-defined]
        yield process


def client_of(process: RegistryProcess, **more: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": process.url, **more})


def value(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def order_class(*more: str) -> Any:
    """A message class as protoc makes one: Order with an item, and further texts."""
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    nested = message.nested_type.add(name="Line")
    nested.field.add(name="sku", number=1, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_OPTIONAL)
    for number, name in enumerate(("item", *more), 1):
        message.field.add(
            name=name, number=number, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_OPTIONAL
        )
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_avro_json_and_protobuf_serializers_work(running: RegistryProcess) -> None:
    client = client_of(running)
    avro = AvroSerializer(client, json.dumps(ORDER))({"item": "tea"}, value("a"))
    assert AvroDeserializer(client_of(running))(avro, value("a")) == {"item": "tea"}
    plain = JSONSerializer(json.dumps(JSON_ORDER), client)({"item": "tea"}, value("j"))
    assert JSONDeserializer(None, schema_registry_client=client_of(running))(plain, value("j")) == {"item": "tea"}
    kind = order_class()
    proto = ProtobufSerializer(kind, client, {"use.deprecated.format": False})(kind(item="tea"), value("p"))
    decoded = ProtobufDeserializer(kind, {"use.deprecated.format": False}, client_of(running))(proto, value("p"))
    assert decoded.item == "tea"
    assert client.get_subjects() == ["a-value", "j-value", "p-value"]


def test_serializers_name_schemas_by_guid_in_a_header(running: RegistryProcess) -> None:
    client = client_of(running)
    kind = order_class()
    by_header = {"schema.id.serializer": header_schema_id_serializer}
    either = {"schema.id.deserializer": dual_schema_id_deserializer}
    plain = {"use.deprecated.format": False}
    pairs: list[tuple[Any, Any, Any]] = [
        (
            AvroSerializer(client, json.dumps(ORDER), conf=by_header),
            AvroDeserializer(client_of(running), conf=either),
            {"item": "green tea"},
        ),
        (
            JSONSerializer(json.dumps(JSON_ORDER), client, conf=by_header),
            JSONDeserializer(None, schema_registry_client=client_of(running), conf=either),
            {"item": "green tea"},
        ),
        (
            ProtobufSerializer(kind, client, plain | by_header),
            ProtobufDeserializer(kind, plain | either, client_of(running)),
            kind(item="green tea"),
        ),
    ]
    for number, (serializer, deserializer, order) in enumerate(pairs):
        context = SerializationContext(f"t{number}", MessageField.VALUE, [])
        payload = serializer(order, context)
        ((name, header),) = context.headers
        guid = client.get_latest_version(f"t{number}-value").guid
        assert (name, header[:17]) == ("__value_schema_id", b"\x01" + uuid.UUID(guid).bytes)
        assert payload[:1] != b"\x00", "no prefix"
        assert deserializer(payload, context) == order


def test_the_text_of_a_proto_file_and_pythons_descriptor_are_one_schema(running: RegistryProcess) -> None:
    kind = order_class("note")
    client = client_of(running)
    ProtobufSerializer(kind, client, {"use.deprecated.format": False})(kind(item="tea"), value("p"))
    text = """
        syntax = "proto3";
        package shop;
        message Order {
          // As Java's clients send it.
          message Line { string sku = 1; }
          string item = 1;
          string note = 2;
        }
    """
    assert client.register_schema("java", Schema(text, "PROTOBUF")) == client.get_latest_version("p-value").schema_id
    file = FileDescriptorProto.FromString(base64.b64decode(client_of(running).get_schema(1, fmt="serialized").schema_str))
    assert [each.name for each in file.message_type] == ["Order"]


def test_evolution_is_decided_by_the_level(running: RegistryProcess) -> None:
    client = client_of(running)
    client.register_schema("s", Schema(json.dumps(ORDER), "AVRO"))
    wider = {**ORDER, "fields": [*ORDER["fields"], {"name": "amount", "type": "int"}]}  # type: ignore[misc]
    assert client.test_compatibility("s", Schema(json.dumps(wider), "AVRO")) is False
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("s", Schema(json.dumps(wider), "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    client.set_compatibility("s", "FORWARD")
    assert client.register_schema("s", Schema(json.dumps(wider), "AVRO")) == 2


def test_references_by_the_client(running: RegistryProcess) -> None:
    client = client_of(running)
    client.register_schema("inner", Schema(json.dumps({**ORDER, "name": "Inner"}), "AVRO"))
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "i", "type": "Inner"}]}
    schema = Schema(json.dumps(outer), "AVRO", [SchemaReference("Inner", "inner", 1)])
    raw = AvroSerializer(client, schema, conf={"auto.register.schemas": True})({"i": {"item": "tea"}}, value("o"))
    assert AvroDeserializer(client_of(running))(raw, value("o")) == {"i": {"item": "tea"}}


def facts(url: str) -> Any:
    """All that the registry says of what is registered."""

    def get(path: str) -> Any:
        with urllib.request.urlopen(url + path) as answer:
            return json.load(answer)

    listed = get("/schemas?deleted=true")
    return [
        listed,
        get("/subjects?deleted=true"),
        get("/config"),
        get("/mode"),
        [get(f"/schemas/ids/{each['id']}") for each in listed],
    ]


def test_ids_and_answers_survive_a_kill(running: RegistryProcess) -> None:
    client = client_of(running)
    for number in range(30):
        client.register_schema(
            f"s{number % 7}", Schema(json.dumps({"type": "fixed", "name": "F", "size": number % 7 + 1}), "AVRO")
        )
    client.set_compatibility(level="FULL")
    client.delete_subject("s1")
    client.delete_subject("s2")
    client.delete_subject("s2", permanent=True)
    before = facts(running.url)
    running.kill()
    running.start()
    assert facts(running.url) == before
    assert client_of(running).register_schema("new", Schema('"int"', "AVRO")) == 8


def test_the_topic_holds_confluents_records(running: RegistryProcess, servers: str) -> None:
    client = client_of(running)
    client.register_schema("s", Schema('{"type": "int"}', "AVRO"))
    client.set_compatibility("s", "NONE")
    client.delete_subject("s")
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "x", "enable.auto.commit": False, "enable.partition.eof": False}
    )
    topic = running.topic  # type: ignore[attr-defined]
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [(each.key(), each.value()) for each in consumer.consume(6, 30)]
    consumer.close()
    noop = (b'{"keytype":"NOOP","magic":0}', None)  # written at the start, and by a registry that begins to lead
    assert found == [
        noop,
        noop,
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            b'{"subject":"s","version":1,"id":1,"schema":"\\"int\\"","deleted":false}',
        ),
        (b'{"keytype":"CONFIG","subject":"s","magic":0}', b'{"subject":"s","compatibilityLevel":"NONE"}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"subject":"s","version":1}'),
        (b'{"keytype":"CONFIG","subject":"s","magic":0}', None),
    ]


def test_a_login_and_tls(servers: str, tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("node", "127.0.0.1", "localhost")
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "cert.pem").write_text(issued.chain)
    (tmp_path / "key.pem").write_text(issued.key)
    made = subprocess.run(
        [sys.executable, "-m", "tidelog.cli.main", "registry", "--hash-password", "ann"],
        input="tea time\n",
        text=True,
        capture_output=True,
        check=True,
    )
    (tmp_path / "users").write_text(made.stdout)
    files = ("--users", "users", "--tls-certificate", "cert.pem", "--tls-key", "key.pem")
    arguments = [each if each.startswith("--") else str(tmp_path / each) for each in files]
    with registry(servers, "--topic", "_secured", *arguments) as process:
        assert process.url.startswith("https://")
        trusted = {"ssl.ca.location": str(tmp_path / "ca.pem")}
        client = client_of(process, **trusted, **{"basic.auth.user.info": "ann:tea time"})
        assert client.register_schema("s", Schema('"int"', "AVRO")) == 1
        with pytest.raises(SchemaRegistryError) as refused:
            client_of(process, **trusted, **{"basic.auth.user.info": "ann:coffee"}).get_subjects()
        assert refused.value.http_status_code == 401


def test_the_answer_to_a_body_that_is_too_large_arrives_and_the_connection_goes_on(running: RegistryProcess) -> None:
    address = urlsplit(running.url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=60)
    for _ in range(3):
        connection.request("POST", "/subjects/s/versions", b"x" * (64 << 20))  # sends all of it before it reads
        with connection.getresponse() as answer:
            assert (answer.status, json.load(answer)["error_code"]) == (413, 413)
        connection.request("GET", "/subjects")
        with connection.getresponse() as answer:
            assert (answer.status, json.load(answer)) == (200, [])
    connection.close()


def test_a_topic_that_would_lose_schemas_is_refused(servers: str) -> None:
    from click.testing import CliRunner

    from tidelog.cli.main import main

    made = CliRunner().invoke(main, ["topics", "--bootstrap-server", servers, "--create", "--topic", "plain"])
    assert made.exit_code == 0, made.output
    with pytest.raises(AssertionError, match=r"set cleanup\.policy=compact"):
        RegistryProcess(servers, "--topic", "plain").start()


def test_it_stops_in_order(servers: str) -> None:
    process = RegistryProcess(servers, "--topic", "_stopped")
    process.start()
    assert process.stop() == 0


def _register_until_done(url: str, subject: str, schema: str) -> int:
    """The id; tries again while there is no leader."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return client_of_url(url).register_schema(subject, Schema(schema, "AVRO"))
        except SchemaRegistryError as problem:
            if problem.http_status_code < 500 or time.monotonic() > deadline:
                raise


def client_of_url(url: str) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": url, "max.retries": 0})


def test_several_registries_elect_a_leader_and_another_takes_over(servers: str) -> None:
    together = ("--topic", "_several", "--group", "several")
    with registry(servers, *together) as first, registry(servers, *together) as second, registry(servers, *together) as third:
        every = [first, second, third]
        found = {}
        for number in range(12):
            schema = json.dumps({"type": "fixed", "name": "F", "size": number + 1})
            found[schema] = _register_until_done(every[number % 3].url, f"s{number}", schema)
        assert sorted(found.values()) == list(range(1, 13))
        leader = min(every, key=lambda each: each.url)
        leader.kill()
        others = [each for each in every if each is not leader]
        for number in range(12, 18):
            schema = json.dumps({"type": "fixed", "name": "F", "size": number + 1})
            found[schema] = _register_until_done(others[number % 2].url, f"s{number}", schema)
        assert sorted(found.values()) == list(range(1, 19))
        for each in others:
            for schema, schema_id in found.items():
                assert json.loads(_schema_of(each.url, schema_id)) == json.loads(schema)


def _schema_of(url: str, schema_id: int) -> str:
    """A registry that does not lead may be a moment behind."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return str(client_of_url(url).get_schema(schema_id).schema_str)
        except SchemaRegistryError:
            if time.monotonic() > deadline:
                raise
