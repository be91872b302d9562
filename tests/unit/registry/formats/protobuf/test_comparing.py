"""What may change in a Protobuf schema."""

from __future__ import annotations

import pytest

from tidelog.registry.formats import Document
from tidelog.registry.formats.protobuf.schema_format import compare

HEAD = 'syntax = "proto3";\n'


def kinds(reader: str, writer: str) -> list[str]:
    return [each.kind for each in compare(Document(HEAD + reader), Document(HEAD + writer), lenient=False)]


M = "message M {{ {} }}"
BOTH = "oneof o { int32 a = 1; int32 b = 2; }"


@pytest.mark.parametrize(
    ("reader", "writer", "wanted"),
    [
        (M.format("int32 a = 1; string b = 2;"), M.format("int32 a = 1;"), []),
        (M.format(""), M.format("int32 a = 1;"), []),
        (M.format("int32 renamed = 1;"), M.format("int32 a = 1;"), []),
        (M.format("int64 a = 1;"), M.format("int32 a = 1;"), []),
        (M.format("bool a = 1;"), M.format("uint64 a = 1;"), []),
        (M.format("sint32 a = 1;"), M.format("int32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (M.format("bytes a = 1;"), M.format("string a = 1;"), []),
        (M.format("fixed32 a = 1;"), M.format("sfixed32 a = 1;"), []),
        (M.format("float a = 1;"), M.format("double a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (M.format("repeated string a = 1;"), M.format("string a = 1;"), []),
        (M.format("repeated int32 a = 1;"), M.format("int32 a = 1;"), ["FIELD_NUMERIC_LABEL_CHANGED"]),
        ("enum E { A = 0; }" + M.format("E a = 1;"), "enum E { A = 0; }" + M.format("int32 a = 1;"), []),
        (M.format("N a = 1;") + "message N {}", M.format("int32 a = 1;") + "message N {}", ["FIELD_KIND_CHANGED"]),
        (
            M.format("N a = 1;") + "message N {} message O {}",
            M.format("O a = 1;") + "message N {} message O {}",
            ["FIELD_NAMED_TYPE_CHANGED"],
        ),
        (M.format("map<int32, int64> a = 1;"), M.format("map<int32, int32> a = 1;"), []),
        (M.format("map<int32, string> a = 1;"), M.format("map<int32, int32> a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (M.format(""), M.format("map<int32, int32> a = 1;"), []),
        ("message N {}", "message N {}" + M.format(""), ["MESSAGE_REMOVED"]),
        (M.format(""), "message N {}" + M.format(""), ["MESSAGE_REMOVED"]),
        ("message N {}" + M.format(""), M.format("") + "message N {}", []),
        ("package b; " + M.format(""), "package a; " + M.format(""), ["PACKAGE_CHANGED"]),
        (M.format("oneof o { int32 a = 1; }"), M.format("int32 a = 1;"), []),
        (M.format(BOTH), M.format("int32 a = 1; int32 b = 2;"), ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"]),
        (M.format(BOTH), M.format("oneof o { int32 a = 1; } int32 b = 2;"), ["FIELD_MOVED_TO_EXISTING_ONEOF"]),
        (M.format("oneof o { int32 a = 1; }"), M.format("oneof o { int32 a = 1; int32 b = 2; }"), ["ONEOF_FIELD_REMOVED"]),
        (M.format("int32 c = 3;"), M.format("oneof o { int32 a = 1; int32 b = 2; }"), []),
        (M.format("int32 a = 1; oneof o { int32 b = 2; }"), M.format("oneof o { int32 a = 1; int32 b = 2; }"), []),
        (M.format("optional int32 a = 1;"), M.format("int32 a = 1;"), []),
    ],
)  # fmt: skip
def test_what_may_change(reader: str, writer: str, wanted: list[str]) -> None:
    assert kinds(reader, writer) == wanted


def test_required_fields_may_neither_come_nor_go() -> None:
    without, required = 'syntax = "proto2"; message M {}', 'syntax = "proto2"; message M { required int32 a = 1; }'
    assert [each.kind for each in compare(Document(required), Document(without), lenient=False)] == ["REQUIRED_FIELD_ADDED"]
    assert [each.kind for each in compare(Document(without), Document(required), lenient=False)] == ["REQUIRED_FIELD_REMOVED"]
