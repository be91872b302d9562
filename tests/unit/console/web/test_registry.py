from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.unit.console.payloads.protobuf_samples import EVENT, REFERENCES, classes
from tests.unit.console.web.browser import Browser, console
from tidelog.console.payloads.decoding import decode
from tidelog.console.payloads.framed import Refused
from tidelog.console.web.registry import AT_ONCE, MOST_MISSES, NOT_AGAIN_S, Registry
from tidelog.console.web.starting import ClusterOption
from tidelog.model.errors import ConfigError
from tidelog.testing import Broker, SchemaRegistry


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as found:
        yield found


def test_schemas_are_looked_up_once(registry: SchemaRegistry) -> None:
    registry.reset()
    number = registry.register("a-value", '"long"')
    found = Registry(registry.url)
    assert found.find(number).text_of(b"\x02") == "1"
    registry.refuse(500, times=5)
    assert found.find(number).text_of(b"\x04") == "2"
    registry.reset()


def test_what_is_not_there_or_does_not_answer_is_not_asked_for_again_at_once(registry: SchemaRegistry) -> None:
    registry.reset()
    now = [0.0]
    found = Registry(registry.url, lambda: now[0])
    with pytest.raises(Refused, match="no schema 1"):
        found.find(1)
    assert registry.register("a-value", '"long"') == 1
    with pytest.raises(Refused):
        found.find(1)
    now[0] = NOT_AGAIN_S
    assert found.find(1).kind == "AVRO"
    registry.refuse(500)
    with pytest.raises(Refused, match="status 500"):
        found.find(2)
    with pytest.raises(Refused, match="status 500"):
        found.find(3)
    nowhere = Registry("http://127.0.0.1:1")
    with pytest.raises(Refused, match="does not answer"):
        nowhere.find(1)


def test_json_schemas_check_that_it_is_json(registry: SchemaRegistry) -> None:
    registry.reset()
    number = registry.register("j-value", {"type": "object"}, "JSON")
    found = Registry(registry.url)
    assert found.find(number).text_of(b'{"a":1.10}') == '{"a":1.10}'
    with pytest.raises(Refused):
        found.find(number).text_of(b"{")


@pytest.mark.parametrize("url", ["", "registry:8081", "ftp://x", "http://", "http://x/?a=1", "file:///etc/passwd"])
def test_only_addresses_of_http_are_taken(url: str) -> None:
    with pytest.raises(ConfigError):
        Registry(url)


def test_records_in_avro_are_shown_filtered_and_linked_to_their_schema(broker: Broker, registry: SchemaRegistry) -> None:
    registry.reset()
    broker.reset()
    broker.create_topic("orders")
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    number = registry.register("orders-value", json.dumps(schema))
    prefix = b"\0" + number.to_bytes(4, "big")
    broker.produce("orders", prefix + b"\x02", prefix + b"\x04", b"\0\0\0\x03\xe7\x02", prefix + b"\x80")
    option = ClusterOption("main", broker.bootstrap_servers, {}, None, registry.url)

    async def job(browser: Browser) -> None:
        assert (await browser.session())["features"]["avro"] is True
        lines = await browser.stream("clusters/main/topics/orders/records", mode="oldest")
        values = [line["value"] for line in lines if line["kind"] == "record"]
        assert [(each["decoder"], each["text"]) for each in values[:2]] == [("avro", '{"id":1}'), ("avro", '{"id":2}')]
        assert values[0]["schema"] == {"id": number, "guid": None, "type": "AVRO", "subject": None}
        assert values[2]["decoder"] == "hex"
        assert "no schema 999" in values[2]["refused"][0]["reason"]
        assert "ends inside" in values[3]["refused"][0]["reason"]
        lines = await browser.stream("clusters/main/topics/orders/records", filter="value.id == 2")
        assert [line["offset"] for line in lines if line["kind"] == "record"] == ["1"]

    console(broker.bootstrap_servers, job, clusters=[option])


def test_ids_at_random_cost_few_requests(registry: SchemaRegistry) -> None:
    registry.reset()
    now = [0.0]
    found = Registry(registry.url, lambda: now[0])
    for number in range(1, MOST_MISSES + 1):
        with pytest.raises(Refused, match=f"no schema {number}"):
            found.find(number)
    number = registry.register("a-value", '"long"')
    with pytest.raises(Refused, match="in vain"):
        found.find(MOST_MISSES + 1)
    now[0] = NOT_AGAIN_S
    assert found.find(number).kind == "AVRO"


class Slow(Registry):
    """Answers one request at a time, when ``go`` is released; who waits is counted."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__("http://registry.example.org")
        self.go, self.began = threading.Semaphore(0), threading.Semaphore(0)
        self.asked: list[str] = []
        self.answer = answer

    def _get(self, path: str, what: str) -> Any:
        self.asked.append(path)
        self.began.release()
        assert self.go.acquire(timeout=60)
        return self.answer


def test_what_is_kept_is_found_while_another_schema_is_asked_for() -> None:
    slow = Slow({"schema": '"long"'})
    slow.go.release()
    assert slow.find(1).schema_id == 1
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(slow.find, 2)
        for _ in range(2):
            assert slow.began.acquire(timeout=60)
        assert slow.find(1).text_of(b"\x02") == "1"
        assert not waiting.done()
        slow.go.release()
        assert waiting.result(60).schema_id == 2


def test_a_schema_is_asked_for_once_and_few_at_a_time() -> None:
    slow = Slow({"schema": '"long"'})
    with ThreadPoolExecutor(AT_ONCE * 3) as pool:
        same = [pool.submit(slow.find, 1) for _ in range(AT_ONCE)]
        others = [pool.submit(slow.find, number) for number in range(2, AT_ONCE + 3)]
        for _ in range(AT_ONCE):
            assert slow.began.acquire(timeout=60)
        assert len(slow.asked) == AT_ONCE
        for _ in range(AT_ONCE + 2):
            slow.go.release()
        assert {each.result(60).schema_id for each in same} == {1}
        assert [each.result(60).schema_id for each in others] == list(range(2, AT_ONCE + 3))
    assert sorted(slow.asked) == sorted(f"/schemas/ids/{number}" for number in range(1, AT_ONCE + 3))


def test_threads_that_wait_for_one_schema_are_all_refused() -> None:
    slow = Slow({"schema": '"long"', "references": [{"subject": "a"}]})
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(slow.find, 1) for _ in range(3)]
        assert slow.began.acquire(timeout=60)
        slow.go.release()
        for each in found:
            with pytest.raises(Refused, match="no name, subject or version"):
                each.result(60)
    assert slow.asked == ["/schemas/ids/1"]


def test_schemas_that_are_kept_are_bounded_by_their_size(registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.reset()
    monkeypatch.setattr("tidelog.console.web.registry.MAX_KEPT_TEXT", 20)
    first, second = registry.register("a-value", '"long"'), registry.register("b-value", '{"type":"array","items":"long"}')
    found = Registry(registry.url)
    found.find(first)
    found.find(second)
    registry.refuse(500)
    assert found.find(second).kind == "AVRO"
    with pytest.raises(Refused, match="status 500"):
        found.find(first)


def serialized(registry: SchemaRegistry, kind: str, header: bool) -> tuple[bytes, list[tuple[str, bytes]]]:
    """A record value as confluent-kafka writes it, and its headers."""
    client, headers = SchemaRegistryClient({"url": registry.url}), list[tuple[str, bytes]]()
    context = SerializationContext("orders", MessageField.VALUE, headers)
    more = {"schema.id.serializer": header_schema_id_serializer} if header else {}
    if kind == "AVRO":
        schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
        return AvroSerializer(client, json.dumps(schema), conf=more)({"id": 1 << 60}, context) or b"", headers
    types = classes(EVENT, REFERENCES)
    event = types["shop.Event"](id=1 << 60, cash=types["shop.Money"](units=7))
    event.at.seconds = 60
    serializer = ProtobufSerializer(types["shop.Event"], client, {"use.deprecated.format": False, **more})
    return serializer(event, context) or b"", headers


@pytest.mark.parametrize("header", [False, True], ids=["prefix", "header"])
@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF"])
def test_what_confluent_kafka_serializes_is_decoded(registry: SchemaRegistry, kind: str, header: bool) -> None:
    registry.reset()
    value, headers = serialized(registry, kind, header)
    shown = decode(value, "auto", 1000, Registry(registry.url), dict(headers).get("__value_schema_id"))
    wanted: object = {"id": 1 << 60}
    if kind == "PROTOBUF":
        wanted = {"id": 1 << 60, "cash": {"units": 7}, "at": "1970-01-01T00:01:00Z"}
    assert (shown.decoder, json.loads(shown.text), shown.refused) == (kind.lower(), wanted, ())
    assert shown.schema is not None
    assert (shown.schema.guid is not None, shown.schema.schema_id is None) == (header, header)
    assert len(headers) == header


def test_records_in_protobuf_with_the_schema_in_a_header_are_shown_and_filtered(broker: Broker, registry: SchemaRegistry) -> None:
    registry.reset()
    broker.reset()
    broker.create_topic("orders")
    value, headers = serialized(registry, "PROTOBUF", True)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", value, headers=headers)
    assert producer.flush(30) == 0
    option = ClusterOption("main", broker.bootstrap_servers, {}, None, registry.url)

    async def job(browser: Browser) -> None:
        assert (await browser.session())["features"]["protobuf"] is True
        for wanted in ("auto", "protobuf"):
            lines = await browser.stream(
                "clusters/main/topics/orders/records", mode="oldest", value=wanted, filter="value.cash.units == 7"
            )
            (record,) = [line for line in lines if line["kind"] == "record"]
            assert record["value"]["decoder"] == "protobuf"
            assert record["value"]["schema"]["guid"] == str(UUID(bytes=headers[0][1][1:17]))

    console(broker.bootstrap_servers, job, clusters=[option])
