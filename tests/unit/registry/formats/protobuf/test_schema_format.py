"""Protobuf: texts and descriptors are one schema, and canonical texts keep everything."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import descriptor_pb2, struct_pb2, timestamp_pb2, type_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Document
from tidelog.registry.formats.protobuf.parsing import parse
from tidelog.registry.formats.protobuf.resolving import normalized
from tidelog.registry.formats.protobuf.schema_format import canonical, formatted

HEAD = 'syntax = "proto3";\n'


def made(text: str, references: dict[str, str] | None = None) -> str:
    return canonical(Document(text, references or {}), normalize=False, new=True)


def encoded(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


FULL = """
// A comment.
syntax = "proto3";
package a.b;

import "google/protobuf/timestamp.proto";
import public "other.proto";

option java_package = "x.y";
option optimize_for = CODE_SIZE;
option (custom.file) = "z";

/* Another. */
message Order {
  option deprecated = true;
  message Line { string sku = 1; int32 count = 2 [packed = false, json_name = "n"]; }
  map<string, Line> lines = 1;
  message Late { }
  oneof payment {
    option (custom.one) = { a: 1 b: "}" };
    string card = 2;
    bytes iban = 3;
  }
  optional sint64 total = 4;
  repeated .a.b.Order.Kind kinds = 5 [deprecated = true];
  google.protobuf.Timestamp at = 6;
  c.Other other = 7;
  enum Kind { option allow_alias = true; NONE = 0; A = 1; B = 1 [deprecated = true]; reserved 5, 7 to max; reserved "OLD"; }
  reserved 20, 30 to 40, 100 to max;
  reserved "gone", "lost";
}

service Orders {
  rpc Get (Order) returns (stream Order.Line);
  rpc Put (stream Order) returns (c.Other) { option deprecated = true; }
}
"""
OTHER = {"other.proto": 'syntax = "proto3"; package c; message Other { int32 x = 1; }'}
CANONICAL = """syntax = "proto3";
package a.b;
import "google/protobuf/timestamp.proto";
import public "other.proto";
option java_package = "x.y";
option optimize_for = CODE_SIZE;
option (custom.file) = "z";

message Order {
  option deprecated = true;
  reserved 20, 30 to 40, 100 to max;
  reserved "gone", "lost";
  enum Kind {
    option allow_alias = true;
    reserved 5, 7 to max;
    reserved "OLD";
    NONE = 0;
    A = 1;
    B = 1 [deprecated = true];
  }
  message Line {
    string sku = 1;
    int32 count = 2 [json_name = "n", packed = false];
  }
  map<string, Line> lines = 1;
  oneof payment {
    option (custom.one) = { a : 1 b : "}" };
    string card = 2;
    bytes iban = 3;
  }
  optional sint64 total = 4;
  repeated Kind kinds = 5 [deprecated = true];
  google.protobuf.Timestamp at = 6;
  c.Other other = 7;
  message Late {
  }
}

service Orders {
  rpc Get (Order) returns (stream Order.Line);
  rpc Put (stream Order) returns (c.Other) {
    option deprecated = true;
  }
}
"""


def test_the_canonical_text_has_everything_but_comments() -> None:
    plain = FULL.replace("[packed = false, json_name", "[json_name").replace("packed = false, ", "")
    wanted = CANONICAL.replace(", packed = false", "")
    assert made(plain, OTHER) == wanted
    assert made(wanted, OTHER) == wanted


def test_a_descriptor_and_its_text_are_one_schema() -> None:
    text = made(
        FULL.replace("packed = false, ", "")
        .replace("(custom.file)", "java_outer_classname")
        .replace('    option (custom.one) = { a: 1 b: "}" };\n', ""),
        OTHER,
    )
    file = FileDescriptorProto.FromString(base64.b64decode(formatted(Document(text, OTHER), "serialized")))
    file.name = "orders.proto"
    for message in file.message_type:
        for field in message.field:
            field.json_name = field.json_name or "".join(
                part.title() if index else part for index, part in enumerate(field.name.split("_"))
            )
    assert made(encoded(file), OTHER) == text


@pytest.mark.parametrize("module", [descriptor_pb2, struct_pb2, timestamp_pb2, type_pb2])
def test_protobufs_own_files_survive_the_way_through_text(module: object) -> None:
    file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)  # type: ignore[attr-defined]
    text = canonical(Document(encoded(file)), normalize=False, new=False)
    assert text.startswith("syntax = ")
    again = FileDescriptorProto.FromString(base64.b64decode(formatted(Document(text), "serialized")))
    assert again == normalized(file)


def test_the_order_of_nested_messages_is_kept_because_clients_count_them() -> None:
    text = made(HEAD + "message M { message A {} map<int32, A> x = 1; message B {} map<int32, B> y = 2; message C {} }")
    file = FileDescriptorProto.FromString(base64.b64decode(formatted(Document(text), "serialized")))
    assert [each.name for each in file.message_type[0].nested_type] == ["A", "XEntry", "B", "YEntry", "C"]


def test_a_descriptor_with_custom_options_stays_one() -> None:
    file = parse(HEAD + "message M { int32 a = 1; }")
    file.message_type[0].options.MergeFromString(b"\x82\x44\x03\x0a\x01x")
    found = made(encoded(file))
    assert FileDescriptorProto.FromString(base64.b64decode(found)).message_type[0].options.SerializeToString()
    assert made(found) == found


def test_the_result_is_what_protobuf_itself_understands() -> None:
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    text = (
        'syntax = "proto2"; import "google/protobuf/timestamp.proto"; message M { required string s = 1 [default = "a\\"b"]; '
        'optional double d = 2 [default = -1.5]; optional bytes b = 3 [default = "\\001x"]; '
        "optional group G = 4 { optional int32 i = 1; } "
        "repeated int64 p = 5 [packed = true]; extensions 100 to 200; "
        "optional google.protobuf.Timestamp t = 6; enum E { X = -1; } "
        "optional E e = 7 [default = X]; } extend M { optional int32 ext = 150; }"
    )
    file = FileDescriptorProto.FromString(base64.b64decode(formatted(Document(made(text)), "serialized")))
    file.name = "m.proto"
    pool.AddSerializedFile(file.SerializeToString())
    fields = pool.FindMessageTypeByName("M").fields_by_name
    assert fields["s"].default_value == 'a"b'
    assert fields["d"].default_value == -1.5
    assert fields["b"].default_value == b"\x01x"
    assert fields["e"].enum_type.name == "E"
    assert fields["g"].type == FieldDescriptorProto.TYPE_GROUP


def test_editions_are_read() -> None:
    text = made('edition = "2023"; option features.field_presence = IMPLICIT; message M { int32 a = 1; }')
    assert text.startswith('edition = "2023";\noption features.field_presence = IMPLICIT;\n')


def test_confluents_types_need_no_reference() -> None:
    assert made(HEAD + 'import "confluent/type/decimal.proto"; message M { confluent.type.Decimal d = 1; }')
    assert made(HEAD + 'import "confluent/meta.proto"; message M { int32 a = 1; }')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "syntax = \"proto4\"; message M {}",
        HEAD,
        HEAD + "message M { int32 a = 1; int32 b = 1; }",
        HEAD + "message M { int32 a = 1; int32 a = 2; }",
        HEAD + "message M { int32 a = 0; }",
        HEAD + "message M { int32 a = 19001; }",
        HEAD + "message M { Nowhere a = 1; }",
        HEAD + 'import "nowhere.proto"; message M {}',
        HEAD + "message M { int32 a = 1 }",
        HEAD + "message M { int32 a = 1;",
        HEAD + "message M {} message M {}",
        HEAD + "enum E { A = 1; }",
        HEAD + "message M { reserved 1; int32 a = 1; }",
        HEAD + "message M { reserved 1 to 9, 3; int32 a = 7; }",
        HEAD + "message M { int32 a = 99999999999999999999; }",
        HEAD + "message M { string a = 1 [default = 08]; }",
        HEAD + "message M {" * 100 + "}" * 100,
        HEAD + 'message M { string s = 1; } option java_package = 5;',
        "aGVsbG8gd29ybGQ=",
    ],
)  # fmt: skip
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        made(text)
