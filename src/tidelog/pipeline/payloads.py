"""Bytes into values, record by record, on executors: Avro and Protobuf, with and without a registry's header.

An error in a record becomes a text beside it; an error outside of it (no registry) ends the batch.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidelog.model.errors import ConfigError
from tidelog.pipeline import arrow_types, protobuf_types
from tidelog.pipeline.failures import SchemaMoved
from tidelog.pipeline.model import Decode, Format, Registry
from tidelog.pipeline.registry import Schema, UnknownSchema, client_of
from tidelog.pipeline.wire_format import NotFramed, skip_message_index, split_header


@dataclass(frozen=True, slots=True)
class Resolved:
    """A ``Decode`` with its schema, as the driver found it. Sent to executors. ``files``: descriptors for Protobuf."""

    decode: Decode
    registry: Registry | None
    schema: Schema | None = None
    files: tuple[bytes, ...] = ()


def resolve(decode: Decode, registry: Registry | None) -> Resolved:
    """Ask the registry and read files, on the driver. ConfigError or PipelineFailure when that fails."""
    schema: Schema | None = Schema(-1, decode.format.value.upper(), decode.schema) if decode.schema else None
    files: tuple[bytes, ...] = ()
    if decode.descriptor:
        try:
            with open(decode.descriptor, "rb") as file:
                files = (file.read(),)
        except OSError as error:
            raise ConfigError(f"descriptor: {decode.descriptor} cannot be read: {error.strerror}.") from None
    elif decode.subject and schema is None and registry is not None:
        form = "serialized" if decode.format is Format.PROTOBUF else ""
        schema = client_of(registry).newest(decode.subject, form)
        if decode.format is Format.PROTOBUF:
            files = tuple(protobuf_types.registered(text) for text in (*(text for _, text in schema.references), schema.text))
    return Resolved(decode, registry, schema, files)


def arrow_type(resolved: Resolved) -> pa.DataType:
    """The Arrow type of the decoded values."""
    if resolved.decode.format is Format.PROTOBUF:
        return protobuf_types.arrow_type(message_class(resolved).DESCRIPTOR)
    if resolved.schema is None:
        raise ConfigError("There is no schema for Avro: say schema, schema_file or subject.")
    schema, named = _parsed(resolved.schema)
    kind = arrow_types.of_avro(schema, named)
    if not pa.types.is_struct(kind):
        raise ConfigError(f"The Avro schema is a {arrow_types.ddl(kind)}; a value must be a record, whose fields become columns.")
    return kind


def avro_schema(resolved: Resolved) -> Any:
    """The schema as fastavro has parsed it. ConfigError when there is none or it cannot be used."""
    if resolved.schema is None:
        raise ConfigError("There is no schema for Avro: say schema, schema_file or subject.")
    return _parsed(resolved.schema)[0]


def message_class(resolved: Resolved) -> Any:
    """Protobuf's class for a decoder."""
    return protobuf_types.message_class(list(resolved.files), resolved.decode.message)


def _parsed(schema: Schema) -> tuple[Any, dict[str, Any]]:
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema

    named: dict[str, Any] = {}
    try:
        for _, text in schema.references:
            parse_schema(_known(json.loads(text)), named_schemas=named)
        return parse_schema(_known(json.loads(schema.text)), named_schemas=named), named
    except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"The Avro schema cannot be used: {type(error).__name__}: {error}.") from None


def _known(schema: Any) -> Any:
    """The schema without logical types that columns lack, such as times of day: columns have the type below them, and Avro's
    reader would make values that do not fit it."""
    if isinstance(schema, list):
        return [_known(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "logicalType" or value in arrow_types.AVRO_LOGICAL}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = _known(kept[key])
    if "fields" in kept:
        kept["fields"] = [_known(field) for field in kept["fields"]]
    return kept


class Decoder:
    """Decodes many records. Made once for each task."""

    def __init__(self, resolved: Resolved) -> None:
        self._resolved = resolved
        self._one: Callable[[bytes], Any] = self._protobuf() if resolved.decode.format is Format.PROTOBUF else self._avro()

    def decode(self, values: Sequence[bytes | None]) -> tuple[list[Any], list[str | None]]:
        """Values (None where there is none or it is bad) and errors (None where there is none)."""
        found: list[Any] = []
        errors: list[str | None] = []
        for value in values:
            try:
                found.append(None if value is None else self._one(value))
                errors.append(None)
            except SchemaMoved:
                raise
            except (NotFramed, UnknownSchema, ConfigError) as error:
                found.append(None)
                errors.append(str(error))
            except Exception as error:  # Parsers raise anything for bytes that they do not expect.
                if type(error).__module__ == "tidelog.pipeline.failures":
                    raise
                found.append(None)
                errors.append(f"{self._resolved.decode.format} cannot be read: {type(error).__name__}: {error}"[:500])
        return found, errors

    def _avro(self) -> Callable[[bytes], Any]:
        from fastavro import schemaless_reader

        resolved = self._resolved
        if resolved.schema is None:
            raise ConfigError("There is no schema for Avro: say schema, schema_file or subject.")
        reader, _ = _parsed(resolved.schema)

        def read(data: bytes | memoryview, writer: Any, wanted: Any) -> Any:
            stream = io.BytesIO(data)
            value = schemaless_reader(stream, writer, wanted)
            left = len(data) - stream.tell()
            if left:
                raise NotFramed(f"{left} bytes are left over after the record: it was written with another schema")
            return value

        if not resolved.decode.framed:
            return lambda data: read(data, reader, None)
        writers: dict[int, Any] = {}

        def framed(data: bytes) -> Any:
            schema_id, rest = split_header(data)
            if schema_id not in writers:
                writers[schema_id] = self._writer(schema_id, reader)
            writer = writers[schema_id]
            return read(rest, writer, None if writer is reader else reader)

        return framed

    def _writer(self, schema_id: int, reader: Any) -> Any:
        """The schema of an id. SchemaMoved when it is newer than ours and has fields that ours would drop."""
        ours, registry = self._resolved.schema, self._resolved.registry
        if registry is None or ours is None:
            raise ConfigError("framed records need a registry")
        if schema_id == ours.schema_id:
            return reader
        writer, _ = _parsed(client_of(registry).schema(schema_id))
        lacking = sorted(_fields(writer) - _fields(reader)) if ours.schema_id >= 0 and schema_id > ours.schema_id else []
        if lacking:
            raise SchemaMoved(
                f"Records of schema id {schema_id} have the fields {', '.join(lacking)}, which the newest schema of subject "
                f"{self._resolved.decode.subject!r} (id {ours.schema_id}) lacks: name the subject that they are registered under."
            )
        return writer

    def _protobuf(self) -> Callable[[bytes], Any]:
        kind = message_class(self._resolved)
        read = protobuf_types.reader(kind.DESCRIPTOR)
        if not self._resolved.decode.framed:
            return lambda data: read(kind.FromString(data))

        def framed(data: bytes) -> Any:
            _, rest = split_header(data)
            _, body = skip_message_index(rest)
            return read(kind.FromString(bytes(body)))

        return framed


def _fields(schema: Any, prefix: str = "") -> set[str]:
    if isinstance(schema, list):
        return set().union(*(_fields(branch, prefix) for branch in schema))
    if not isinstance(schema, dict):
        return set()
    found = set()
    for field in schema.get("fields", ()):
        found |= {prefix + field["name"]} | _fields(field["type"], prefix + field["name"] + ".")
    return found | _fields(schema.get("items"), prefix) | _fields(schema.get("values"), prefix)


def to_arrow(found: list[Any], errors: list[str | None], kind: pa.DataType) -> tuple[pa.Array, list[str | None]]:
    """Values as an Arrow array. A value that does not fit its type (a year 12000 in a timestamp) is an error of its record
    alone."""
    try:
        return pa.array(found, kind), errors
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        pass
    kept, said = list(found), list(errors)
    for index, value in enumerate(found):
        try:
            kept[index] = arrow_types.plain(value)
            pa.array([kept[index]], kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
            kept[index], said[index] = None, f"a value does not fit its column: {error}"[:500]
    return pa.array(kept, kind), said
