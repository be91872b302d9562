"""From the text of a ``.proto`` file to a FileDescriptorProto whose types are still names as they are written (see
``resolving``).

proto2, proto3 and editions, by protobuf's language specification. All errors are InvalidSchema, with the line.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, Edition, FieldDescriptorProto, FileDescriptorProto

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats.protobuf.declarations import (
    MAX_FIELD,
    read_enum,
    read_extensions,
    read_reserved,
    read_service,
    read_statement,
)
from tidelog.registry.formats.protobuf.options import read_option, read_value, set_option
from tidelog.registry.formats.protobuf.tokens import END, FLOAT, INT, NAME, TEXT, Tokens, escaped

MAX_DEPTH = 64
_F = FieldDescriptorProto
SCALARS = {
    "double": _F.TYPE_DOUBLE, "float": _F.TYPE_FLOAT, "int64": _F.TYPE_INT64, "uint64": _F.TYPE_UINT64, "int32": _F.TYPE_INT32,
    "fixed64": _F.TYPE_FIXED64, "fixed32": _F.TYPE_FIXED32, "bool": _F.TYPE_BOOL, "string": _F.TYPE_STRING,
    "bytes": _F.TYPE_BYTES, "uint32": _F.TYPE_UINT32, "sfixed32": _F.TYPE_SFIXED32, "sfixed64": _F.TYPE_SFIXED64,
    "sint32": _F.TYPE_SINT32, "sint64": _F.TYPE_SINT64,
}  # fmt: skip
LABELS = {"optional": _F.LABEL_OPTIONAL, "required": _F.LABEL_REQUIRED, "repeated": _F.LABEL_REPEATED}


def parse(text: str) -> FileDescriptorProto:
    """The descriptor, without a name."""
    return _Parser(Tokens(text)).file()


def camel(name: str, *, upper: bool) -> str:
    """``a_b`` as ``aB`` (the name in JSON) or ``AB`` (of the entries of a map)."""
    result, raised = [], upper
    for each in name:
        if each == "_":
            raised = True
        else:
            result.append(each.upper() if raised else each)
            raised = False
    return "".join(result)


class _Parser:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._file = FileDescriptorProto()
        self._proto3 = False

    def file(self) -> FileDescriptorProto:
        tokens, file = self._tokens, self._file
        if tokens.accept("syntax"):
            tokens.expect("=")
            syntax = tokens.text().decode("utf-8", "replace")
            if syntax not in ("proto2", "proto3"):
                raise InvalidSchema(f"the syntax {syntax!r} is neither proto2 nor proto3")
            self._proto3 = syntax == "proto3"
            if self._proto3:
                file.syntax = syntax
            tokens.expect(";")
        elif tokens.accept("edition"):
            tokens.expect("=")
            edition = tokens.text().decode("utf-8", "replace")
            if f"EDITION_{edition}" not in set(Edition.keys()) or not edition.isdigit():
                raise InvalidSchema(f"the edition {edition!r} is not known")
            file.syntax, file.edition = "editions", Edition.Value(f"EDITION_{edition}")
            tokens.expect(";")
        while tokens.peek.kind != END:
            self._top_level()
        return file

    def _top_level(self) -> None:
        tokens, file = self._tokens, self._file
        if tokens.accept(";"):
            return
        if tokens.accept("package"):
            file.package = tokens.dotted()
            tokens.expect(";")
        elif tokens.accept("import"):
            if tokens.accept("public"):
                file.public_dependency.append(len(file.dependency))
            elif tokens.accept("weak"):
                file.weak_dependency.append(len(file.dependency))
            file.dependency.append(tokens.text().decode("utf-8", "replace"))
            tokens.expect(";")
        elif tokens.accept("option"):
            read_statement(tokens, file.options)
        elif tokens.accept("message"):
            self._message(file.message_type.add(), 0)
        elif tokens.accept("enum"):
            read_enum(tokens, file.enum_type.add())
        elif tokens.accept("service"):
            read_service(tokens, file.service.add())
        elif tokens.accept("extend"):
            self._extend(file.extension, file.message_type, 0)
        else:
            raise tokens.wrong("a declaration is expected")

    # -- messages ------------------------------------------------------------------------------------------------------------

    def _message(self, message: DescriptorProto, depth: int) -> None:
        message.name = self._tokens.name()
        self._body(message, depth)

    def _body(self, message: DescriptorProto, depth: int) -> None:
        tokens = self._tokens
        if depth > MAX_DEPTH:
            raise tokens.wrong("messages are nested too deeply")
        tokens.expect("{")
        while not tokens.accept("}"):
            self._element(message, depth)
        self._implicit_oneofs(message)

    def _element(self, message: DescriptorProto, depth: int) -> None:
        tokens = self._tokens
        if tokens.accept(";"):
            return
        # A field may be of a type with the name of a keyword: then a name follows, and then "=".
        keyword = tokens.peek.value if tokens.peek.kind == NAME else ""
        if keyword == "option":
            tokens.take()
            read_statement(tokens, message.options)
        elif keyword == "message" and tokens.after.kind == NAME:
            tokens.take()
            self._message(message.nested_type.add(), depth + 1)
        elif keyword == "enum" and tokens.after.kind == NAME:
            tokens.take()
            read_enum(tokens, message.enum_type.add())
        elif keyword == "oneof" and tokens.after.kind == NAME:
            tokens.take()
            self._oneof(message, depth)
        elif keyword == "extend" and (tokens.after.kind == NAME or tokens.after.value == "."):
            tokens.take()
            self._extend(message.extension, message.nested_type, depth)
        elif keyword == "reserved":
            tokens.take()
            read_reserved(tokens, message, MAX_FIELD, 1)
        elif keyword == "extensions":
            tokens.take()
            read_extensions(tokens, message)
        else:
            self._field(message.field, message.nested_type, depth)

    def _oneof(self, message: DescriptorProto, depth: int) -> None:
        tokens, index = self._tokens, len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=tokens.name())
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept(";"):
                continue
            if tokens.accept("option"):
                read_statement(tokens, oneof.options)
            else:
                self._field(message.field, message.nested_type, depth).oneof_index = index

    def _extend(self, fields: Any, nested: Any, depth: int) -> None:
        tokens = self._tokens
        extendee = tokens.dotted()
        tokens.expect("{")
        while not tokens.accept("}"):
            if not tokens.accept(";"):
                self._field(fields, nested, depth).extendee = extendee

    def _field(self, fields: Any, nested: Any, depth: int) -> FieldDescriptorProto:
        tokens = self._tokens
        field: FieldDescriptorProto = fields.add(label=_F.LABEL_OPTIONAL)
        if tokens.peek.value in LABELS:
            label = tokens.take().value
            field.label = LABELS[label]
            field.proto3_optional = label == "optional" and self._proto3
            if not field.proto3_optional:
                field.ClearField("proto3_optional")
        if tokens.peek.value == "map" and tokens.after.value == "<":
            self._map(field, nested)
        elif tokens.peek.value == "group" and tokens.after.kind == NAME:
            self._group(field, nested, depth)
            return field
        else:
            self._type(field)
            field.name = tokens.name()
        self._number(field)
        self._field_options(field)
        tokens.expect(";")
        return field

    def _type(self, field: FieldDescriptorProto) -> None:
        name = self._tokens.dotted()
        if name in SCALARS:
            field.type = SCALARS[name]
        else:
            field.type_name = name

    def _number(self, field: FieldDescriptorProto) -> None:
        self._tokens.expect("=")
        number = self._tokens.integer()
        if not 1 <= number <= MAX_FIELD:
            raise InvalidSchema(f"the number of {field.name} is {number}: it is from 1 to {MAX_FIELD}")
        field.number = number

    def _map(self, field: FieldDescriptorProto, nested: Any) -> None:
        tokens = self._tokens
        tokens.take()
        tokens.expect("<")
        entry: DescriptorProto = nested.add()
        entry.options.map_entry = True
        for number, name in ((1, "key"), (2, "value")):
            self._type(entry.field.add(name=name, number=number, label=_F.LABEL_OPTIONAL))
            tokens.expect("," if number == 1 else ">")
        field.name = tokens.name()
        field.label, field.type = _F.LABEL_REPEATED, _F.TYPE_MESSAGE
        field.type_name = entry.name = camel(field.name, upper=True) + "Entry"

    def _group(self, field: FieldDescriptorProto, nested: Any, depth: int) -> None:
        tokens = self._tokens
        tokens.take()
        message: DescriptorProto = nested.add(name=tokens.name())
        field.name, field.type, field.type_name = message.name.lower(), _F.TYPE_GROUP, message.name
        self._number(field)
        self._field_options(field)
        self._body(message, depth + 1)

    def _field_options(self, field: FieldDescriptorProto) -> None:
        tokens = self._tokens
        if not tokens.accept("["):
            return
        while True:
            if tokens.peek.value in ("default", "json_name") and tokens.after.value == "=":
                name = tokens.take().value
                tokens.take()
                self._pseudo_option(field, name)
            else:
                parts, value = read_option(tokens)
                set_option(field.options, parts, value)
            if not tokens.accept(","):
                break
        tokens.expect("]")

    def _pseudo_option(self, field: FieldDescriptorProto, name: str) -> None:
        kind, value = read_value(self._tokens)
        if name == "json_name":
            field.json_name = value.decode("utf-8", "replace") if kind == TEXT else str(value)
        elif kind == TEXT:
            is_bytes = field.type == _F.TYPE_BYTES
            field.default_value = escaped(value)[1:-1] if is_bytes else value.decode("utf-8", "replace")
        elif kind == FLOAT or (kind == INT and field.type in (_F.TYPE_FLOAT, _F.TYPE_DOUBLE)):
            whole = float(value).is_integer() and abs(value) < 1e15
            field.default_value = str(int(value)) if whole else repr(float(value))
        else:
            field.default_value = str(value)

    def _implicit_oneofs(self, message: DescriptorProto) -> None:
        """An ``optional`` field of proto3 is the only one of a oneof that is not written."""
        taken = {each.name for each in message.oneof_decl} | {each.name for each in message.field}
        for field in message.field:
            if field.proto3_optional:
                name = "_" + field.name
                while name in taken:
                    name = "X" + name
                taken.add(name)
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=name)
