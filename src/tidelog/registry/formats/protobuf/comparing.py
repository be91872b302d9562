"""Whether a reader's Protobuf schema can read data of a writer's: messages by name, fields by number.

Fields may come, go and change their names; types may change within a group that is written alike. The words for differences are
those of Confluent's registry.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from tidelog.registry.formats import Difference

_F = FieldDescriptorProto
_NOT_PACKED = frozenset({_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE, _F.TYPE_GROUP})
"""A reader that expects one value takes the last of several; several numbers are packed, and written differently."""
_ALIKE = (
    {_F.TYPE_INT32, _F.TYPE_UINT32, _F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM},
    {_F.TYPE_SINT32, _F.TYPE_SINT64},
    {_F.TYPE_FIXED32, _F.TYPE_SFIXED32},
    {_F.TYPE_FIXED64, _F.TYPE_SFIXED64},
    {_F.TYPE_STRING, _F.TYPE_BYTES},
)
_STRUCTURES = {_F.TYPE_MESSAGE, _F.TYPE_GROUP}


def differences(reader: FileDescriptorProto, writer: FileDescriptorProto) -> list[Difference]:
    """What prevents reading; names in both are complete."""
    check = _Check()
    if reader.package != writer.package:
        check.refuse("PACKAGE_CHANGED", "#/", f"{reader.package or 'none'} was {writer.package or 'none'}")
        return check.found
    check.messages(reader.message_type, writer.message_type, "#")
    return check.found


class _Check:
    def __init__(self) -> None:
        self.found: list[Difference] = []

    def refuse(self, word: str, at: str, why: str) -> None:
        self.found.append(Difference(word, at, why, at))

    def messages(self, reader: Iterable[DescriptorProto], writer: Iterable[DescriptorProto], path: str) -> None:
        """Messages of one level, by name. Entries of maps are compared with their fields."""
        mine = {each.name: each for each in reader}
        for each in writer:
            at = f"{path}/{each.name}"
            if each.options.map_entry:
                continue
            if each.name not in mine:
                self.refuse("MESSAGE_REMOVED", at, f"{each.name} can be written")
                continue
            self._fields(mine[each.name], each, at)
            self.messages(mine[each.name].nested_type, each.nested_type, at)

    def _fields(self, reader: DescriptorProto, writer: DescriptorProto, at: str) -> None:
        mine, theirs = {each.number: each for each in reader.field}, {each.number: each for each in writer.field}
        oneofs = {_oneof(each, reader) for each in reader.field} - {None}
        for number in sorted({*mine, *theirs}):
            where = f"{at}/{number}"
            if number not in theirs:
                if mine[number].label == _F.LABEL_REQUIRED:
                    self.refuse("REQUIRED_FIELD_ADDED", where, f"{mine[number].name} may be left out")
            elif number not in mine:
                oneof = _oneof(theirs[number], writer)
                if theirs[number].label == _F.LABEL_REQUIRED:
                    self.refuse("REQUIRED_FIELD_REMOVED", where, f"{theirs[number].name} is required")
                elif oneof is not None and oneof in oneofs:
                    self.refuse("ONEOF_FIELD_REMOVED", where, f"{theirs[number].name} can be what is set of {oneof}")
            else:
                self._field((mine[number], reader), (theirs[number], writer), where)
        self._moved(reader, writer, at)

    def _moved(self, reader: DescriptorProto, writer: DescriptorProto, at: str) -> None:
        """Fields that are in a oneof of the reader's, and in none of the writer's."""
        theirs = {each.number: each for each in writer.field}
        before = {_oneof(each, writer) for each in writer.field} - {None}
        moved: dict[str, list[str]] = {}
        for each in reader.field:
            oneof = _oneof(each, reader)
            if oneof is not None and each.number in theirs and _oneof(theirs[each.number], writer) is None:
                moved.setdefault(oneof, []).append(each.name)
        for oneof, names in moved.items():
            if len(names) > 1:
                self.refuse("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{at}/{oneof}", f"{', '.join(names)} can be set together")
            elif oneof in before:
                self.refuse("FIELD_MOVED_TO_EXISTING_ONEOF", f"{at}/{oneof}", f"{names[0]} can be set with another of {oneof}")

    def _field(
        self, reader: tuple[FieldDescriptorProto, DescriptorProto], writer: tuple[FieldDescriptorProto, DescriptorProto], at: str
    ) -> None:
        (mine, mine_in), (theirs, theirs_in) = reader, writer
        entry, written = _entry(mine, mine_in), _entry(theirs, theirs_in)
        kinds = {mine.type, theirs.type}
        if entry is not None and written is not None:
            for own, other in zip(entry.field, written.field, strict=True):
                self._field((own, entry), (other, written), f"{at}/{own.name}")
        elif kinds & _STRUCTURES and (len(kinds) > 1 or (entry is None) != (written is None)):
            self.refuse("FIELD_KIND_CHANGED", at, f"{_kind(mine)} was {_kind(theirs)}")
        elif len(kinds) > 1 and not any(kinds <= group for group in _ALIKE):
            self.refuse("FIELD_SCALAR_KIND_CHANGED", at, f"{_kind(mine)} was {_kind(theirs)}")
        elif len(kinds) == 1 and mine.type_name != theirs.type_name:
            self.refuse("FIELD_NAMED_TYPE_CHANGED", at, f"{mine.type_name} was {theirs.type_name}")
        elif (mine.label == _F.LABEL_REPEATED) != (theirs.label == _F.LABEL_REPEATED) and mine.type not in _NOT_PACKED:
            self.refuse("FIELD_NUMERIC_LABEL_CHANGED", at, "one number and several are written differently")
        elif mine.label == _F.LABEL_REQUIRED != theirs.label:
            self.refuse("REQUIRED_FIELD_ADDED", at, f"{mine.name} may be left out")


def _kind(field: FieldDescriptorProto) -> str:
    return str(_F.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _entry(field: FieldDescriptorProto, message: DescriptorProto) -> DescriptorProto | None:
    """The message of a map's entries; None for another field."""
    name = field.type_name.rpartition(".")[2]
    if field.type != _F.TYPE_MESSAGE or field.label != _F.LABEL_REPEATED:
        return None
    return next((each for each in message.nested_type if each.name == name and each.options.map_entry), None)


def _oneof(field: FieldDescriptorProto, message: DescriptorProto) -> str | None:
    """The oneof of a field, if it is one that was written."""
    if field.HasField("oneof_index") and not field.proto3_optional:
        return str(message.oneof_decl[field.oneof_index].name)
    return None
