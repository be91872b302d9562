"""Which message or enum a name in a ``.proto`` file means: innermost scope first, as protobuf's compilers look.

After ``resolve`` all names are complete, with a leading dot, and fields know whether theirs is a message or an enum.
``Symbols`` also says the shortest name that means the same in a scope, for printing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats.protobuf.parsing import camel

_F = FieldDescriptorProto
MAX_NAME = 1024
"""Characters of a complete name: all that is in a package or message carries it."""
MAX_PACKAGES = 100
_MESSAGE, _ENUM, _PACKAGE = "message", "enum", "package"


class Symbols:
    """All messages, enums and packages of some files, by their complete names with a leading dot."""

    def __init__(self, files: Iterable[FileDescriptorProto]) -> None:
        """InvalidSchema for a name that is too long."""
        self._kinds: dict[str, str] = {}
        for file in files:
            if len(file.package) > MAX_NAME or file.package.count(".") > MAX_PACKAGES:
                raise InvalidSchema(f"its package has more than {MAX_NAME} characters or {MAX_PACKAGES} parts")
            scope = ""
            for part in file.package.split(".") if file.package else ():
                scope = f"{scope}.{part}"
                self._kinds.setdefault(scope, _PACKAGE)
            self._add(scope, file.message_type, file.enum_type)

    def _add(self, scope: str, messages: Iterable[DescriptorProto], enums: Iterable[Any]) -> None:
        for enum in enums:
            self._kinds[f"{scope}.{enum.name}"] = _ENUM
        for message in messages:
            name = f"{scope}.{message.name}"
            if len(name) > MAX_NAME:
                raise InvalidSchema(f"the full name of {message.name[:80]} has more than {MAX_NAME} characters")
            self._kinds[name] = _MESSAGE
            self._add(name, message.nested_type, message.enum_type)

    def find(self, scope: str, name: str) -> str | None:
        """The complete name of what ``name`` means in ``scope`` (empty, or with a leading dot)."""
        if name.startswith("."):
            return name if self._kinds.get(name) in (_MESSAGE, _ENUM) else None
        first = name.partition(".")[0]
        while True:
            if f"{scope}.{first}" in self._kinds:
                found = f"{scope}.{name}"
                if self._kinds.get(found) in (_MESSAGE, _ENUM):
                    return found
                if "." in name and self._kinds[f"{scope}.{first}"] != _PACKAGE:
                    return None
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def is_enum(self, name: str) -> bool:
        """Whether a complete name is that of an enum."""
        return self._kinds.get(name) == _ENUM

    def shortest(self, scope: str, name: str) -> str:
        """The shortest form of a complete name that means the same in the scope."""
        parts = name[1:].split(".")
        for count in range(1, len(parts) + 1):
            short = ".".join(parts[-count:])
            if self.find(scope, short) == name:
                return short
        return name


def resolve(file: FileDescriptorProto, symbols: Symbols) -> None:
    """Complete the names in a file, in place. InvalidSchema for one that means nothing."""
    for scope, field in fields_of(file):
        if field.type_name:
            field.type_name = _found(symbols, scope, field.type_name, field.name)
            if not field.HasField("type"):
                field.type = _F.TYPE_ENUM if symbols.is_enum(field.type_name) else _F.TYPE_MESSAGE
        if field.extendee:
            field.extendee = _found(symbols, scope, field.extendee, field.name)
    package = f".{file.package}" if file.package else ""
    for service in file.service:
        for method in service.method:
            scope = f"{package}.{service.name}"
            method.input_type = _found(symbols, scope, method.input_type, method.name)
            method.output_type = _found(symbols, scope, method.output_type, method.name)


def _found(symbols: Symbols, scope: str, name: str, user: str) -> str:
    found = symbols.find(scope, name)
    if found is None:
        raise InvalidSchema(f"{user} refers to {name}, which is defined neither here nor in an import")
    return found


def fields_of(file: FileDescriptorProto) -> Iterator[tuple[str, FieldDescriptorProto]]:
    """All fields and extensions with the scope in which they are."""
    package = f".{file.package}" if file.package else ""
    yield from ((package, each) for each in file.extension)
    for message in file.message_type:
        yield from _fields(f"{package}.{message.name}", message)


def _fields(scope: str, message: DescriptorProto) -> Iterator[tuple[str, FieldDescriptorProto]]:
    yield from ((scope, each) for each in (*message.field, *message.extension))
    for inner in message.nested_type:
        yield from _fields(f"{scope}.{inner.name}", inner)


def normalized(file: FileDescriptorProto) -> FileDescriptorProto:
    """A copy without what a text does not hold: the file's name, positions, names in JSON that follow from the fields'."""
    result = FileDescriptorProto()
    result.CopyFrom(file)
    result.ClearField("name")
    result.ClearField("source_code_info")
    if result.syntax == "proto2":
        result.ClearField("syntax")
    for _, field in fields_of(result):
        if field.json_name == camel(field.name, upper=False):
            field.ClearField("json_name")
    return result
