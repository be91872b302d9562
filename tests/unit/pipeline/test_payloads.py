"""Avro and Protobuf records into values; what is wrong with one stays with it."""

from __future__ import annotations

import datetime
import io
import json
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
fastavro = pytest.importorskip("fastavro")

from tests.unit.pipeline.test_protobuf_types import DESCRIPTOR  # noqa: E402
from tests.unit.pipeline.test_registry import register  # noqa: E402
from tidelog.model.errors import ConfigError  # noqa: E402
from tidelog.pipeline.failures import PipelineFailure, SchemaMoved  # noqa: E402
from tidelog.pipeline.model import Decode, Format, Registry  # noqa: E402
from tidelog.pipeline.payloads import Decoder, arrow_type, resolve, to_arrow  # noqa: E402
from tidelog.testing import SchemaRegistry  # noqa: E402

OLD = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}
NEW = {"type": "record", "name": "R", "fields": [*OLD["fields"], {"name": "tip", "type": "int", "default": 0}]}  # type: ignore[misc]


def avro(schema: Any, value: Any, schema_id: int | None = None) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return (b"" if schema_id is None else b"\x00" + schema_id.to_bytes(4, "big")) + out.getvalue()


def test_plain_avro_is_decoded_and_bad_records_keep_their_own_errors() -> None:
    decoder = Decoder(resolve(Decode(Format.AVRO, json.dumps(OLD)), None))
    good = avro(OLD, {"id": "x"})
    found, errors = decoder.decode([good, None, b"\x80", good + b"!"])
    assert found == [{"id": "x"}, None, None, None]
    assert errors[:2] == [None, None]
    assert "avro cannot be read" in str(errors[2]) and "1 bytes are left over" in str(errors[3])


def test_avro_types_that_no_column_has_are_read_as_what_is_below_them() -> None:
    times = [{"name": "at", "type": {"type": "int", "logicalType": "time-millis"}}]
    times.append({"name": "more", "type": ["null", {"type": "array", "items": {"type": "long", "logicalType": "time-micros"}}]})
    days = {"name": "day", "type": {"type": "int", "logicalType": "date"}}
    schema = {"type": "record", "name": "T", "fields": [*times, days]}
    plain = json.loads(json.dumps(schema).replace("time-m", "x"))
    resolved = resolve(Decode(Format.AVRO, json.dumps(schema)), None)
    found, errors = Decoder(resolved).decode([avro(plain, {"at": 3_600_000, "more": [7], "day": datetime.date(2026, 1, 31)})])
    values, errors = to_arrow(found, errors, arrow_type(resolved))
    assert errors == [None]
    assert values.to_pylist() == [{"at": 3_600_000, "more": [7], "day": datetime.date(2026, 1, 31)}]


def test_framed_records_of_older_schemas_are_read_as_the_newest_and_unknown_ids_are_bad() -> None:
    with SchemaRegistry() as registry:
        old, new = register(registry, "s", OLD), register(registry, "s", NEW)
        resolved = resolve(Decode(Format.AVRO, subject="s", framed=True), Registry(registry.url))
        found, errors = Decoder(resolved).decode(
            [avro(OLD, {"id": "a"}, old), avro(NEW, {"id": "b", "tip": 3}, new), avro(OLD, {"id": "c"}, 999), b"{}"]
        )
        assert found == [{"id": "a", "tip": 0}, {"id": "b", "tip": 3}, None, None]
        assert "schema id 999 is not in the registry" in str(errors[2])
        assert "2 bytes are too few" in str(errors[3])


def test_a_record_with_a_newer_schema_than_ours_asks_for_it_instead_of_losing_its_new_field() -> None:
    with SchemaRegistry() as registry:
        register(registry, "s", OLD)
        resolved = resolve(Decode(Format.AVRO, subject="s", framed=True), Registry(registry.url))
        new = register(registry, "s", NEW)
        with pytest.raises(SchemaMoved, match="have the fields tip"):
            Decoder(resolved).decode([avro(NEW, {"id": "b", "tip": 3}, new)])


def test_a_registry_that_is_down_takes_no_record_for_bad() -> None:
    with SchemaRegistry() as registry:
        new = register(registry, "s", OLD)
        register(registry, "s", NEW)
        resolved = resolve(Decode(Format.AVRO, subject="s", framed=True), Registry(registry.url, timeout_ms=1))
    with pytest.raises(PipelineFailure, match="did not answer"):
        Decoder(resolved).decode([avro(OLD, {"id": "a"}, new)])


def test_protobuf_is_decoded_from_a_descriptor_with_and_without_a_header(tmp_path: Any) -> None:
    file = tmp_path / "rides.desc"
    file.write_bytes(DESCRIPTOR.SerializeToString())
    data = b"\x0a\x01x\x10\x07"
    plain = resolve(Decode(Format.PROTOBUF, descriptor=str(file), message="rides.Ride"), None)
    assert Decoder(plain).decode([data, b"\xff"])[0][0]["id"] == "x"
    assert Decoder(plain).decode([b"\xff"])[1][0] is not None
    framed = resolve(Decode(Format.PROTOBUF, descriptor=str(file), message="rides.Ride", framed=True), None)
    assert Decoder(framed).decode([b"\x00\x00\x00\x00\x01\x00" + data])[0][0]["fare"] == 7
    assert arrow_type(framed).names[:2] == ["id", "fare"]


def test_schemas_that_cannot_be_used_are_told() -> None:
    for schema, says in (('"string"', "must be a record"), ("{", "cannot be used"), ('{"type": "record"}', "cannot be used")):
        with pytest.raises(ConfigError, match=says):
            arrow_type(resolve(Decode(Format.AVRO, schema), None))
    with pytest.raises(ConfigError, match="cannot be read"):
        resolve(Decode(Format.PROTOBUF, descriptor="/nowhere/x.desc", message="M"), None)


def test_a_value_that_does_not_fit_its_column_is_an_error_of_its_record_alone() -> None:
    values, errors = to_arrow([{"a": 1}, {"a": 1 << 40}, None], [None, None, "bad"], pa.struct([("a", pa.int32())]))
    assert values.to_pylist() == [{"a": 1}, None, None]
    assert errors[0] is None and "does not fit its column" in str(errors[1]) and errors[2] == "bad"
