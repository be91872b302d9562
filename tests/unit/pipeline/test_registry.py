"""Reading from a schema registry, one that is down included."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Iterator

import pytest

from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.model import Registry
from tidelog.pipeline.registry import RegistryClient, UnknownSchema
from tidelog.testing import SchemaRegistry

RECORD = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as found:
        yield found


def register(registry: SchemaRegistry, subject: str, schema: object, **more: object) -> int:
    body = json.dumps({"schema": json.dumps(schema), **more}).encode()
    request = urllib.request.Request(f"{registry.url}/subjects/{subject}/versions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return int(json.loads(answer.read())["id"])


def test_schemas_are_found_by_id_and_by_subject_and_ids_are_asked_once(registry: SchemaRegistry) -> None:
    schema_id = register(registry, "rides-value", RECORD)
    client = RegistryClient(Registry(registry.url, timeout_ms=100))
    assert client.newest("rides-value").schema_id == schema_id
    assert json.loads(client.schema(schema_id).text)["name"] == "R"
    registry.stop()
    assert client.schema(schema_id).kind == "AVRO"


def test_what_a_schema_refers_to_comes_with_it(registry: SchemaRegistry) -> None:
    register(registry, "inner", RECORD)
    outer = {"type": "record", "name": "O", "fields": [{"name": "r", "type": "R"}]}
    schema_id = register(registry, "outer", outer, references=[{"name": "R", "subject": "inner", "version": 1}])
    found = RegistryClient(Registry(registry.url)).schema(schema_id)
    assert [name for name, _ in found.references] == ["R"]


def test_an_unknown_id_is_about_the_record_and_an_unknown_subject_about_the_pipeline(registry: SchemaRegistry) -> None:
    client = RegistryClient(Registry(registry.url))
    with pytest.raises(UnknownSchema, match="schema id 77 is not in the registry"):
        client.schema(77)
    with pytest.raises(PipelineFailure, match="has no subject 'nope'"):
        client.newest("nope")


def test_a_registry_that_is_down_is_asked_until_the_time_is_over_and_then_the_batch_fails(registry: SchemaRegistry) -> None:
    url = registry.url
    registry.stop()
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    client = RegistryClient(Registry(url, timeout_ms=3000), lambda: now[0], pause)
    with pytest.raises(PipelineFailure, match=r"did not answer within 3000 ms .*No record of this batch was treated as bad"):
        client.schema(1)
    assert now[0] == 3.0


def test_one_that_comes_back_in_time_is_no_failure(registry: SchemaRegistry) -> None:
    schema_id, url = register(registry, "rides-value", RECORD), registry.url
    port = int(url.rpartition(":")[2])
    registry.stop()
    again = SchemaRegistry(port=port)

    def pause(seconds: float) -> None:
        again.start()

    client = RegistryClient(Registry(url), pause=pause)
    try:
        with pytest.raises(UnknownSchema):  # it answers, and is a new one that knows nothing
            client.schema(schema_id)
    finally:
        again.stop()


def test_one_that_does_not_speak_http_is_told_like_one_that_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        client = RegistryClient(Registry(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_ms=0))
        with pytest.raises(PipelineFailure, match=r"did not answer within 0 ms \(220 mail"):
            client.schema(1)
        thread.join()
