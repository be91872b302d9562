"""Protobuf without generated code: descriptors from ``protoc``'s file or from a registry, as Arrow types and plain values.

Enums become their names, ``Timestamp`` a timestamp, wrappers the wrapped value; fields of a oneof are columns, one of which is
set.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tidelog.model.errors import ConfigError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMESTAMP = "google.protobuf.Timestamp"
MAX_DEPTH = 32


def message_class(files: list[bytes], name: str) -> Any:
    """The class of a message by its full name. ``files``: FileDescriptorProtos or sets of them, in the order of their imports."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
    from google.protobuf.internal import builder  # noqa: F401  (some versions load the pool's C part by it)

    pool = descriptor_pool.DescriptorPool()
    _well_known(pool)
    for data in files:
        try:
            found = list(descriptor_pb2.FileDescriptorSet.FromString(data).file)
            if not found or not all(file.name for file in found):
                raise message.DecodeError("no set")
        except message.DecodeError:
            found = [descriptor_pb2.FileDescriptorProto.FromString(data)]
        for file in found:
            if file.name.startswith("google/protobuf/"):
                continue
            try:
                pool.Add(file)
            except TypeError as error:
                raise ConfigError(
                    f"The Protobuf descriptor of {file.name} cannot be used: {error}. Write it with --include_imports."
                ) from None
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        raise ConfigError(
            f"There is no message {name!r} in the Protobuf descriptor: say its full name, package included."
        ) from None


def _well_known(pool: Any) -> None:
    from google.protobuf import (
        any_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    for module in (any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2, descriptor_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)


def registered(text: str) -> bytes:
    """A registry's schema as descriptor bytes. ConfigError for the text of a .proto file, which only protoc can read."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(
            "The registry gives its Protobuf schema as the text of a .proto file only: give `descriptor`, the file that "
            "`protoc --include_imports --descriptor_set_out=FILE` writes."
        ) from None


def arrow_type(descriptor: Any, depth: int = 0) -> pa.DataType:
    """The struct of a message. ConfigError for one that contains itself."""
    if depth > MAX_DEPTH:
        raise ConfigError(f"The message {descriptor.full_name} contains itself, and a column of a table cannot.")
    return pa.struct([(field.name, _field_type(field, depth)) for field in descriptor.fields])


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _field_type(field: Any, depth: int) -> pa.DataType:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return pa.map_(_single_type(entry["key"], depth), _single_type(entry["value"], depth))
    kind = _single_type(field, depth)
    return pa.list_(kind) if field.is_repeated else kind


def _single_type(field: Any, depth: int) -> pa.DataType:
    if field.message_type is not None:
        name = field.message_type.full_name
        if name == TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        if _is_wrapper(name):
            return _single_type(field.message_type.fields_by_name["value"], depth)
        return arrow_type(field.message_type, depth + 1)
    return {
        field.CPPTYPE_INT32: pa.int32(), field.CPPTYPE_UINT32: pa.int64(), field.CPPTYPE_INT64: pa.int64(),
        field.CPPTYPE_UINT64: pa.decimal128(20, 0), field.CPPTYPE_BOOL: pa.bool_(), field.CPPTYPE_FLOAT: pa.float32(),
        field.CPPTYPE_DOUBLE: pa.float64(), field.CPPTYPE_ENUM: pa.string(),
        field.CPPTYPE_STRING: pa.binary() if field.type == field.TYPE_BYTES else pa.string(),
    }[field.cpp_type]  # fmt: skip


def _is_wrapper(name: str) -> bool:
    return (
        name.startswith("google.protobuf.")
        and name.endswith("Value")
        and name not in ("google.protobuf.Value", "google.protobuf.ListValue")
    )


def reader(descriptor: Any) -> Callable[[Any], dict[str, Any]]:
    """A function from a message to its values, with everything decided in advance that does not depend on the message."""
    steps = [(field.name, _field_reader(field), field.has_presence) for field in descriptor.fields]

    def read(message: Any) -> dict[str, Any]:
        return {
            name: None if presence and not message.HasField(name) else value(getattr(message, name))
            for name, value, presence in steps
        }

    return read


def _field_reader(field: Any) -> Callable[[Any], Any]:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        key, value = _single_reader(entry["key"]), _single_reader(entry["value"])
        return lambda found: [(key(k), value(found[k])) for k in found]
    single = _single_reader(field)
    return (lambda found: [single(item) for item in found]) if field.is_repeated else single


def _single_reader(field: Any) -> Callable[[Any], Any]:
    if field.message_type is not None:
        name = field.message_type.full_name
        if name == TIMESTAMP:
            return lambda found: EPOCH + timedelta(seconds=found.seconds, microseconds=found.nanos // 1000)
        if _is_wrapper(name):
            inner = _single_reader(field.message_type.fields_by_name["value"])
            return lambda found: inner(found.value)
        return reader(field.message_type)
    if field.enum_type is not None:
        names = field.enum_type.values_by_number
        return lambda found: names[found].name if found in names else str(found)
    return lambda found: found
