"""Protobuf from descriptors: types and values."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from google.protobuf import descriptor_pb2  # noqa: E402

from tidelog.model.errors import ConfigError  # noqa: E402
from tidelog.pipeline.protobuf_types import arrow_type, message_class, reader, registered  # noqa: E402

F = descriptor_pb2.FieldDescriptorProto


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="rides.proto", package="rides", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    state = file.enum_type.add(name="State")
    state.value.add(name="OPEN", number=0)
    state.value.add(name="DONE", number=1)
    ride = file.message_type.add(name="Ride")
    ride.field.add(name="id", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    ride.field.add(name="fare", number=2, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    ride.field.add(name="state", number=3, type=F.TYPE_ENUM, type_name=".rides.State", label=F.LABEL_OPTIONAL)
    ride.field.add(name="at", number=4, type=F.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=F.LABEL_OPTIONAL)
    ride.field.add(name="tags", number=5, type=F.TYPE_STRING, label=F.LABEL_REPEATED)
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="left", number=1, type=F.TYPE_MESSAGE, type_name=".rides.Tree", label=F.LABEL_OPTIONAL)
    return file


DESCRIPTOR = descriptor_pb2.FileDescriptorSet(file=[_file()])


def test_a_message_becomes_a_struct_and_its_values() -> None:
    kind = message_class([DESCRIPTOR.SerializeToString()], "rides.Ride")
    at = pa.timestamp("us", tz="UTC")
    assert arrow_type(kind.DESCRIPTOR) == pa.struct(
        [("id", pa.string()), ("fare", pa.int32()), ("state", pa.string()), ("at", at), ("tags", pa.list_(pa.string()))]
    )
    message = kind(id="x", fare=3, state=1, tags=["a", "b"], at={"seconds": 60, "nanos": 5000})
    when = datetime(1970, 1, 1, 0, 1, 0, 5, tzinfo=UTC)
    assert reader(kind.DESCRIPTOR)(message) == {"id": "x", "fare": 3, "state": "DONE", "at": when, "tags": ["a", "b"]}
    assert reader(kind.DESCRIPTOR)(kind())["at"] is None


def test_a_single_file_as_a_registry_gives_it_works_too() -> None:
    text = base64.b64encode(_file().SerializeToString()).decode()
    assert message_class([registered(text)], "rides.Ride").DESCRIPTOR.full_name == "rides.Ride"
    with pytest.raises(ConfigError, match="descriptor_set_out"):
        registered('syntax = "proto3"; message Ride {}')


def test_what_cannot_be_used_is_told() -> None:
    with pytest.raises(ConfigError, match="no message 'Ride'"):
        message_class([DESCRIPTOR.SerializeToString()], "Ride")
    with pytest.raises(ConfigError, match="contains itself"):
        arrow_type(message_class([DESCRIPTOR.SerializeToString()], "rides.Tree").DESCRIPTOR)
