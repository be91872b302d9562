"""The canonical text of a Protobuf schema: a ``.proto`` file without comments, in the order of the descriptor.

Parsing the text gives the same descriptor again, with the same order of nested messages, which clients' message indexes count:
a message stands before a map or group whose own message follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from tidelog.registry.formats.protobuf.declarations import MAX_ENUM, MAX_FIELD
from tidelog.registry.formats.protobuf.options import written_options
from tidelog.registry.formats.protobuf.parsing import LABELS, SCALARS, camel
from tidelog.registry.formats.protobuf.resolving import Symbols
from tidelog.registry.formats.protobuf.tokens import escaped

_F = FieldDescriptorProto
_TYPE_NAMES = {number: name for name, number in SCALARS.items()}
_LABEL_NAMES = {number: name for name, number in LABELS.items()}
_QUOTED = (_F.TYPE_STRING, _F.TYPE_BYTES)


def print_file(file: FileDescriptorProto, symbols: Symbols) -> str:
    """The text, with a line feed at its end. Names in the file are complete."""
    return "\n".join(_Printer(file, symbols).lines()) + "\n"


class _Printer:
    def __init__(self, file: FileDescriptorProto, symbols: Symbols) -> None:
        self._file = file
        self._symbols = symbols
        self._proto2 = file.syntax in ("", "proto2")

    def lines(self) -> Iterator[str]:
        file = self._file
        if file.syntax == "editions":
            yield f'edition = "{Edition.Name(file.edition).removeprefix("EDITION_")}";'
        else:
            yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        for index, name in enumerate(file.dependency):
            kind = "public " if index in file.public_dependency else "weak " if index in file.weak_dependency else ""
            yield f"import {kind}{escaped(name.encode())};"
        yield from self._options(file.options)
        scope = f".{file.package}" if file.package else ""
        for enum in file.enum_type:
            yield ""
            yield from self._enum(enum)
        groups = {each.type_name for each in file.extension if each.type == _F.TYPE_GROUP}
        for message in file.message_type:
            if f"{scope}.{message.name}" not in groups:
                yield ""
                yield from self._message(message, scope)
        yield from self._extensions(file.extension, scope, file.message_type)
        for service in file.service:
            yield ""
            yield from self._service(service, scope)

    def _options(self, options: Any) -> Iterator[str]:
        for name, value in written_options(options):
            yield f"option {name} = {value};"

    # -- messages ------------------------------------------------------------------------------------------------------------

    def _message(self, message: DescriptorProto, outer: str) -> Iterator[str]:
        yield f"message {message.name} {{"
        yield from _indented(self._body(message, f"{outer}.{message.name}"))
        yield "}"

    def _body(self, message: DescriptorProto, scope: str) -> Iterator[str]:
        yield from self._options(message.options)
        yield from _ranges("reserved", ((each.start, each.end - 1) for each in message.reserved_range), MAX_FIELD)
        if message.reserved_name:
            yield f"reserved {', '.join(escaped(each.encode()) for each in message.reserved_name)};"
        for each in message.extension_range:
            yield from _ranges("extensions", [(each.start, each.end - 1)], MAX_FIELD, _bracketed(written_options(each.options)))
        for enum in message.enum_type:
            yield from self._enum(enum)
        own = {f"{scope}.{each.name}": index for index, each in enumerate(message.nested_type)}
        hidden = {own[each.type_name] for each in (*message.field, *message.extension) if _owns(each, own, message)}
        written = 0
        done: set[int] = set()
        for field in message.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                if field.oneof_index in done:
                    continue
                done.add(field.oneof_index)
                members = [
                    each for each in message.field if each.HasField("oneof_index") and each.oneof_index == field.oneof_index
                ]
            else:
                members = [field]
            for each in members:
                if _owns(each, own, message):
                    while written < own[each.type_name]:
                        if written not in hidden:
                            yield from self._message(message.nested_type[written], scope)
                        written += 1
            lines = [line for each in members for line in self._field(each, scope, message.nested_type, own)]
            if field.HasField("oneof_index") and not field.proto3_optional:
                oneof = message.oneof_decl[field.oneof_index]
                yield f"oneof {oneof.name} {{"
                yield from _indented([*self._options(oneof.options), *lines])
                yield "}"
            else:
                yield from lines
        for index in range(written, len(message.nested_type)):
            if index not in hidden:
                yield from self._message(message.nested_type[index], scope)
        yield from self._extensions(message.extension, scope, message.nested_type)

    def _field(self, field: FieldDescriptorProto, scope: str, nested: Any, own: dict[str, int] | None = None) -> Iterator[str]:
        inner = nested[own[field.type_name]] if own is not None and field.type_name in own else None
        options = _bracketed(self._field_options(field))
        if inner is not None and inner.options.map_entry:
            key, value = inner.field
            types = f"{_TYPE_NAMES[key.type]}, {self._type(value, f'{scope}.{inner.name}')}"
            yield f"map<{types}> {field.name} = {field.number}{options};"
            return
        in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        plain = field.label == _F.LABEL_OPTIONAL and not field.proto3_optional and (in_oneof or not self._proto2)
        label = "" if plain else _LABEL_NAMES[field.label] + " "
        if field.type == _F.TYPE_GROUP and inner is not None:
            yield f"{label}group {inner.name} = {field.number}{options} {{"
            yield from _indented(self._body(inner, f"{scope}.{inner.name}"))
            yield "}"
            return
        yield f"{label}{self._type(field, scope)} {field.name} = {field.number}{options};"

    def _type(self, field: FieldDescriptorProto, scope: str) -> str:
        return _TYPE_NAMES[field.type] if field.type in _TYPE_NAMES else self._symbols.shortest(scope, field.type_name)

    def _field_options(self, field: FieldDescriptorProto) -> Iterator[tuple[str, str]]:
        if field.HasField("default_value"):
            value = field.default_value
            if field.type == _F.TYPE_BYTES:
                value = f'"{value}"'
            elif field.type == _F.TYPE_STRING:
                value = escaped(value.encode())
            yield "default", value
        if field.HasField("json_name") and field.json_name != camel(field.name, upper=False):
            yield "json_name", escaped(field.json_name.encode())
        yield from written_options(field.options)

    def _extensions(self, fields: Iterable[FieldDescriptorProto], scope: str, nested: Any) -> Iterator[str]:
        own = {f"{scope}.{each.name}": index for index, each in enumerate(nested)}
        for field in fields:
            yield f"extend {self._symbols.shortest(scope, field.extendee)} {{"
            groups = own if field.type == _F.TYPE_GROUP else None
            yield from _indented(self._field(field, scope, nested, groups))
            yield "}"

    # -- enums, services -----------------------------------------------------------------------------------------------------

    def _enum(self, enum: EnumDescriptorProto) -> Iterator[str]:
        yield f"enum {enum.name} {{"
        lines = [*self._options(enum.options)]
        lines += _ranges("reserved", ((each.start, each.end) for each in enum.reserved_range), MAX_ENUM)
        if enum.reserved_name:
            lines.append(f"reserved {', '.join(escaped(each.encode()) for each in enum.reserved_name)};")
        lines += [f"{each.name} = {each.number}{_bracketed(written_options(each.options))};" for each in enum.value]
        yield from _indented(lines)
        yield "}"

    def _service(self, service: Any, outer: str) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from _indented(self._options(service.options))
        scope = f"{outer}.{service.name}"
        for method in service.method:
            taken = ("stream " if method.client_streaming else "") + self._symbols.shortest(scope, method.input_type)
            given = ("stream " if method.server_streaming else "") + self._symbols.shortest(scope, method.output_type)
            options = list(self._options(method.options))
            yield f"  rpc {method.name} ({taken}) returns ({given}){' {' if options else ';'}"
            if options:
                yield from _indented(_indented(options))
                yield "  }"
        yield "}"


def _owns(field: FieldDescriptorProto, own: dict[str, int], message: DescriptorProto) -> bool:
    """Whether a nested message is written with the field: the entries of a map, a group."""
    index = own.get(field.type_name)
    return index is not None and (field.type == _F.TYPE_GROUP or message.nested_type[index].options.map_entry)


def _ranges(word: str, ranges: Iterable[tuple[int, int]], highest: int, options: str = "") -> Iterator[str]:
    texts = [str(start) if start == end else f"{start} to {'max' if end == highest else end}" for start, end in ranges]
    if texts:
        yield f"{word} {', '.join(texts)}{options};"


def _bracketed(options: Iterable[tuple[str, str]]) -> str:
    texts = [f"{name} = {value}" for name, value in options]
    return f" [{', '.join(texts)}]" if texts else ""


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
