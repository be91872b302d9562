"""Protobuf: schemas arrive as base64 of a FileDescriptorProto (from Python's serializer) or as the text of a ``.proto`` file.

Descriptors are checked and compared field by field. There is no compiler, so texts are kept as they are and only checked for a
declaration. A text and another schema are not compared, and the answer says so.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError

from tidelog.testing.schema_registry.errors import InvalidSchema
from tidelog.testing.schema_registry.formats import Comparison, Document

_BUILT_IN = ("google/protobuf/", "google/type/", "confluent/")
_DECLARES = re.compile(r"^\s*(message|enum)\s+\w+\s*\{", re.M)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_F = FieldDescriptorProto
_LAST_ONE_COUNTS = frozenset({_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE})
"""A reader that expects one value takes the last of several; several numbers are packed differently."""
_SAME_ON_THE_WIRE = (
    {_F.TYPE_INT32, _F.TYPE_UINT32, _F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_BOOL},
    {_F.TYPE_SINT32, _F.TYPE_SINT64},
    {_F.TYPE_FIXED32, _F.TYPE_SFIXED32},
    {_F.TYPE_FIXED64, _F.TYPE_SFIXED64},
    {_F.TYPE_STRING, _F.TYPE_BYTES},
)


def canonical(document: Document, normalize: bool) -> str:
    """Descriptors unchanged; ``normalize`` removes comments and superfluous blanks from texts."""
    file = _descriptor(document.text)
    if file is None:
        if not _DECLARES.search(_COMMENT.sub("", document.text)):
            raise InvalidSchema("it is neither the base64 of a FileDescriptorProto nor a .proto file that declares a message")
        return " ".join(_COMMENT.sub("", document.text).split()) if normalize else document.text
    for name in file.dependency:
        if name not in document.references and not name.startswith(_BUILT_IN):
            raise InvalidSchema(f"it imports {name}, which is not among its references")
    return document.text


def compare(reader: Document, writer: Document) -> Comparison:
    new, old = _descriptor(reader.text), _descriptor(writer.text)
    if new is None or old is None:
        return Comparison([], [] if reader.text == writer.text else ["the text of a .proto file"])
    check = _Check()
    if new.package != old.package:
        check.refuse("PACKAGE_CHANGED", "/", f"{new.package or 'none'} was {old.package or 'none'}")
    check.messages(new.message_type, old.message_type, "")
    return Comparison(check.reasons)


def _descriptor(text: str) -> FileDescriptorProto | None:
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return None
    return file if file.message_type or file.enum_type else None


class _Check:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def refuse(self, word: str, at: str, why: str) -> None:
        self.reasons.append(f"{word} at {at}: {why}")

    def messages(self, new: Any, old: Any, path: str) -> None:
        """Messages of one level, by name."""
        now: dict[str, DescriptorProto] = {each.name: each for each in new}
        for each in old:
            at = f"{path}/{each.name}"
            if each.name not in now:
                self.refuse("MESSAGE_REMOVED", at, "it may have been written")
                continue
            self._fields(now[each.name], each, at)
            self.messages(now[each.name].nested_type, each.nested_type, at)

    def _fields(self, new: DescriptorProto, old: DescriptorProto, at: str) -> None:
        now, before = {each.number: each for each in new.field}, {each.number: each for each in old.field}
        for number in sorted(set(now) | set(before)):
            where = f"{at}/{number}"
            if number not in before:
                if now[number].label == _F.LABEL_REQUIRED:
                    self.refuse("REQUIRED_FIELD_ADDED", where, f"{now[number].name} may have been left out")
            elif number not in now:
                if before[number].label == _F.LABEL_REQUIRED:
                    self.refuse("REQUIRED_FIELD_REMOVED", where, before[number].name)
                elif _in_oneof(before[number]):
                    self.refuse("ONEOF_FIELD_REMOVED", where, before[number].name)
            else:
                self._field(now[number], before[number], where)
        for index, oneof in enumerate(new.oneof_decl):
            moved = [
                each.name
                for each in new.field
                if _in_oneof(each) and each.oneof_index == index and each.number in before and not _in_oneof(before[each.number])
            ]
            if len(moved) > 1:
                self.refuse("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{at}/{oneof.name}", ", ".join(moved))

    def _field(self, new: FieldDescriptorProto, old: FieldDescriptorProto, at: str) -> None:
        if new.type != old.type and not any({new.type, old.type} <= group for group in _SAME_ON_THE_WIRE):
            kinds = {_F.TYPE_MESSAGE, _F.TYPE_ENUM, _F.TYPE_GROUP}
            word = "FIELD_KIND_CHANGED" if {new.type, old.type} & kinds else "FIELD_SCALAR_KIND_CHANGED"
            self.refuse(word, at, f"{_F.Type.Name(new.type)} was {_F.Type.Name(old.type)}")
        elif new.type_name != old.type_name:
            self.refuse("FIELD_NAMED_TYPE_CHANGED", at, f"{new.type_name} was {old.type_name}")
        elif (new.label == _F.LABEL_REPEATED) != (old.label == _F.LABEL_REPEATED) and new.type not in _LAST_ONE_COUNTS:
            self.refuse("FIELD_NUMERIC_LABEL_CHANGED", at, "one and repeated are written differently")


def _in_oneof(each: FieldDescriptorProto) -> bool:
    return each.HasField("oneof_index") and not each.proto3_optional
