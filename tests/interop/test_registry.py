"""The schema registry over a real Apache Kafka, and its Avro rules beside Apache Avro's."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from tests.interop.availability import unavailable
from tests.interop.nodes import Node
from tests.node.registry_process import registry
from tests.systems.avro_questions import questions
from tests.systems.relays import HERE
from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Document
from tidelog.registry.formats.avro.schema_format import canonical, compare
from tools.jars import JarsMissing, compiled_against

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
QUESTIONS = 4000


def test_ids_survive_a_kill_over_apache_kafka(apache_node: Node) -> None:
    with registry(apache_node.bootstrap) as process:
        client = SchemaRegistryClient({"url": process.url})
        schemas = [json.dumps({"type": "fixed", "name": "F", "size": size}) for size in range(1, 6)]
        ids = [client.register_schema(f"s{number}", Schema(schema, "AVRO")) for number, schema in enumerate(schemas)]
        process.kill()
        process.start()
        client = SchemaRegistryClient({"url": process.url})
        assert ids == [1, 2, 3, 4, 5]
        assert [json.loads(client.get_schema(each).schema_str or "") for each in ids] == [json.loads(each) for each in schemas]
        assert client.register_schema("new", Schema('"int"', "AVRO")) == 6


def _canonical(schema: Any) -> str | None:
    try:
        return canonical(Document(json.dumps(schema)), normalize=False, new=True)
    except InvalidSchema:
        return None


def test_texts_and_verdicts_are_those_of_apache_avro() -> None:
    try:
        classes, jars = compiled_against(HERE / "avro")
    except JarsMissing as missing:
        unavailable(missing)
    asked = list(questions(7, QUESTIONS))
    lines = "".join(json.dumps({"reader": json.dumps(reader), "writer": json.dumps(writer)}) + "\n" for reader, writer in asked)
    command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}/*", "Verdicts"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == QUESTIONS
    compared = incompatible = alike = 0
    for (reader, writer), theirs in zip(asked, answers, strict=True):
        assert (_canonical(reader), _canonical(writer)) == (theirs["reader"], theirs["writer"]), (reader, writer)
        if theirs["reader"] is None or theirs["writer"] is None:
            continue
        found = compare(Document(theirs["reader"]), Document(theirs["writer"]), lenient=False)
        assert bool(found) is bool(theirs["kinds"]), (reader, writer, found, theirs["kinds"])
        alike += sorted(f"{each.kind} {each.path}" for each in found) == sorted(theirs["kinds"])
        compared += 1
        incompatible += bool(found)
    print(f"{compared} pairs compared, {incompatible} incompatible, {compared - alike} with other details")
    # Avro names a type that is met twice at its first place only, and inside itself not again.
    assert compared - alike < compared // 100
    assert compared > QUESTIONS // 2
    assert incompatible > 500
