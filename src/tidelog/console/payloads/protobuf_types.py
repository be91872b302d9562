"""The messages and enums of a Protobuf schema, as the decoder looks them up: by name, or by their place in the file.

The registry's parser reads ``.proto`` texts and descriptors; it needs the package protobuf, the decoding of values does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tidelog.console.payloads.framed import Refused

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

MAX_BYTES: Final = 256 << 10
"""Of a schema and all that it refers to: reading as many takes a second or two."""
DOUBLE, FLOAT, INT64, UINT64, INT32, FIXED64, FIXED32, BOOL, STRING, GROUP, MESSAGE, BYTES, UINT32, ENUM = range(1, 15)
SFIXED32, SFIXED64, SINT32, SINT64 = range(15, 19)
"""Types of fields, numbered as in protobuf's descriptors."""
_REPEATED: Final = 3


@dataclass(frozen=True, slots=True)
class Field:
    """``kind``: of the numbers above. ``type_name``: complete, with a leading dot, of messages and enums. ``oneof``: -1 for
    none."""

    number: int
    name: str
    kind: int
    type_name: str
    repeated: bool
    oneof: int


@dataclass(frozen=True, slots=True)
class Message:
    """``name``: complete, with a leading dot. ``nested``: declared inside, in their order."""

    name: str
    map_entry: bool
    fields: dict[int, Field]
    nested: tuple[Message, ...]
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Types:
    """All that a schema knows, and ``outer``: the messages of its own file."""

    outer: tuple[Message, ...]
    messages: dict[str, Message] = field(default_factory=dict)
    enums: dict[str, Mapping[int, str]] = field(default_factory=dict)

    def at(self, indexes: Iterable[int]) -> list[Message]:
        """The message at a place, and where clients of Java count differently, theirs, too. Refused.

        Python and Go count the entries of maps and the messages of groups, which are nested messages in a descriptor; Java counts
        those that a ``.proto`` declares as messages."""
        steps = tuple(indexes)
        both = [self._walk(steps, declared=False), self._walk(steps, declared=True)]
        places = [each for each in both if each is not None and not each.map_entry]
        if not places:
            raise Refused(f"its schema has no message at {'.'.join(map(str, steps))}")
        return places if places[0] is not places[-1] else places[:1]

    def _walk(self, steps: tuple[int, ...], *, declared: bool) -> Message | None:
        among, found, groups = self.outer, None, frozenset[str]()
        for step in steps:
            counted = [each for each in among if not declared or not (each.map_entry or each.name in groups)]
            if step >= len(counted):
                return None
            found = counted[step]
            among, groups = found.nested, found.groups
        return found


def types_of(text: str, references: Mapping[str, str]) -> Types:
    """The types of a schema. ``references``: texts by the name under which they are imported, each after those that it imports
    itself. Refused for a schema that cannot be used."""
    size = len(text) + sum(map(len, references.values()))
    if size > MAX_BYTES:
        raise Refused(f"its schema has {size} characters: more than {MAX_BYTES} are not read")
    try:
        from tidelog.registry.formats import Document
        from tidelog.registry.formats.protobuf.schema_format import descriptors
    except ModuleNotFoundError as missing:
        raise Refused(f"Protobuf needs the package {missing.name}: pip install 'tidelog[console]'") from None
    try:
        own, imports = descriptors(Document(text, references))
    except Exception as error:  # whatever the schema makes of it
        raise Refused(f"its schema cannot be read: {error or type(error).__name__}") from None
    messages: dict[str, Message] = {}
    enums: dict[str, Mapping[int, str]] = {}
    outer: tuple[Message, ...] = ()
    files = (*imports.values(), own)
    for file in files:
        scope = f".{file.package}" if file.package else ""
        _enums(scope, file.enum_type, enums)
        outer = tuple(_message(scope, each, messages, enums) for each in file.message_type)
    for file in files:
        _extensions(f".{file.package}" if file.package else "", file, messages)
    return Types(outer, messages, enums)


def _message(scope: str, found: DescriptorProto, messages: dict[str, Message], enums: dict[str, Mapping[int, str]]) -> Message:
    name = f"{scope}.{found.name}"
    _enums(name, found.enum_type, enums)
    nested = tuple(_message(name, each, messages, enums) for each in found.nested_type)
    fields = {each.number: _field(each, each.name) for each in found.field}
    groups = frozenset(each.type_name for each in found.field if each.type == GROUP)
    entry = found.options.map_entry and {1, 2} <= fields.keys() and fields[1].kind not in (MESSAGE, GROUP)
    messages[name] = Message(name, entry, fields, nested, groups)
    return messages[name]


def _enums(scope: str, found: Iterable[object], enums: dict[str, Mapping[int, str]]) -> None:
    """The first name of a number is the one that is shown."""
    for each in found:
        enums[f"{scope}.{each.name}"] = {value.number: value.name for value in reversed(each.value)}  # type: ignore[attr-defined]


def _field(found: FieldDescriptorProto, name: str) -> Field:
    oneof = found.oneof_index if found.HasField("oneof_index") else -1
    return Field(found.number, name, found.type, found.type_name, found.label == _REPEATED, oneof)


def _extensions(scope: str, inside: FileDescriptorProto | DescriptorProto, messages: dict[str, Message]) -> None:
    """Fields that are declared outside of their message have the name that protobuf's JSON gives them."""
    for each in inside.extension:
        extended = messages.get(each.extendee)
        if extended is not None:
            extended.fields.setdefault(each.number, _field(each, f"[{scope[1:]}.{each.name}]" if scope else f"[{each.name}]"))
    nested = inside.message_type if hasattr(inside, "message_type") else inside.nested_type
    for inner in nested:
        _extensions(f"{scope}.{inner.name}", inner, messages)
