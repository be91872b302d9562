"""Protobuf schemas as descriptors, compared by what is on the wire; as texts, kept."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from tidelog.testing.schema_registry.errors import InvalidSchema
from tidelog.testing.schema_registry.formats import Document
from tidelog.testing.schema_registry.protobuf import canonical, compare

F = FieldDescriptorProto


def field(number: int, type_: Any = F.TYPE_STRING, *, label: Any = F.LABEL_OPTIONAL, **more: Any) -> FieldDescriptorProto:
    return F(name=f"f{number}", number=number, type=type_, label=label, **more)


def file(*fields: FieldDescriptorProto, package: str = "p", messages: tuple[str, ...] = ("M",), **more: Any) -> Document:
    made = FileDescriptorProto(
        name="m.proto",
        package=package,
        message_type=[DescriptorProto(name=name, field=fields, oneof_decl=more.pop("oneof_decl", [])) for name in messages],
        **more,
    )
    return Document(base64.b64encode(made.SerializeToString()).decode())


ONEOF = [{"name": "choice"}]
CAN_READ = [
    (file(field(1)), file(field(1))),
    (file(field(1), field(2)), file(field(1))),
    (file(field(1)), file(field(1), field(2))),
    (file(field(1, F.TYPE_BYTES)), file(field(1))),
    (file(field(1, F.TYPE_INT64)), file(field(1, F.TYPE_UINT32))),
    (file(field(1), messages=("M", "N")), file(field(1))),
    (file(field(1, oneof_index=0), oneof_decl=ONEOF), file(field(1))),
]
CANNOT_READ = [
    (file(field(1), package="q"), file(field(1)), "PACKAGE_CHANGED"),
    (file(field(1)), file(field(1), messages=("M", "N")), "MESSAGE_REMOVED at /N"),
    (file(field(1, F.TYPE_INT32)), file(field(1)), "FIELD_SCALAR_KIND_CHANGED at /M/1"),
    (file(field(1, F.TYPE_SINT32)), file(field(1, F.TYPE_INT32)), "FIELD_SCALAR_KIND_CHANGED"),
    (file(field(1, F.TYPE_MESSAGE, type_name=".p.N")), file(field(1)), "FIELD_KIND_CHANGED"),
    (
        file(field(1, F.TYPE_MESSAGE, type_name=".p.N")),
        file(field(1, F.TYPE_MESSAGE, type_name=".p.O")),
        "FIELD_NAMED_TYPE_CHANGED",
    ),
    (file(field(1, F.TYPE_INT32, label=F.LABEL_REPEATED)), file(field(1, F.TYPE_INT32)), "FIELD_NUMERIC_LABEL_CHANGED"),
    (file(field(1), field(2, label=F.LABEL_REQUIRED)), file(field(1)), "REQUIRED_FIELD_ADDED at /M/2"),
    (file(field(1)), file(field(1), field(2, label=F.LABEL_REQUIRED)), "REQUIRED_FIELD_REMOVED"),
    (file(oneof_decl=ONEOF), file(field(1, oneof_index=0), oneof_decl=ONEOF), "ONEOF_FIELD_REMOVED"),
    (
        file(field(1, oneof_index=0), field(2, oneof_index=0), oneof_decl=ONEOF),
        file(field(1), field(2)),
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF at /M/choice",
    ),
]


@pytest.mark.parametrize(("reader", "writer"), CAN_READ)
def test_can_be_read(reader: Document, writer: Document) -> None:
    assert compare(reader, writer).reasons == []


@pytest.mark.parametrize(("reader", "writer", "reason"), CANNOT_READ, ids=lambda each: each if isinstance(each, str) else "")
def test_cannot_be_read(reader: Document, writer: Document, reason: str) -> None:
    found = compare(reader, writer).reasons
    assert found
    assert found[0].startswith(reason)


def test_texts_are_kept_and_it_is_said_that_they_are_not_compared() -> None:
    text = 'syntax = "proto3";\n// about it\nmessage M {\n  string f = 1;\n}\n'
    assert canonical(Document(text), False) == text
    assert canonical(Document(text), True) == 'syntax = "proto3"; message M { string f = 1; }'
    assert compare(Document(text), Document(text)).unchecked == []
    assert compare(Document(text), file(field(1))).unchecked == ["the text of a .proto file"]


@pytest.mark.parametrize("wrong", ["", "nothing", "// message M {\n", "AAAA", "message"])
def test_what_is_no_schema_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidSchema):
        canonical(Document(wrong), False)


def test_imports_need_references_but_for_those_that_every_compiler_has() -> None:
    document = file(field(1), dependency=["google/protobuf/any.proto", "other.proto"])
    with pytest.raises(InvalidSchema, match=r"other\.proto"):
        canonical(document, False)
    assert canonical(Document(document.text, {"other.proto": "x"}), False) == document.text
