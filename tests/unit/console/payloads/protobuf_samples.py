"""Classes of protobuf for ``.proto`` texts, without protoc: the other side of what the console decodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tidelog.registry.formats import Document
from tidelog.registry.formats.protobuf.schema_format import descriptors

EVENT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
import "money.proto";

message First { int32 a = 1; }
message Event {
  map<string, int64> counts = 1;
  map<int32, Line> lines = 2;
  message Line { string sku = 1; sint64 change = 2; repeated Line inner = 3; }
  enum Kind { NONE = 0; SALE = 1; }
  int64 id = 3;
  uint64 big = 4;
  Kind kind = 5;
  repeated Kind kinds = 6;
  bytes raw = 7;
  double score = 8;
  float ratio = 9;
  oneof pay { string card = 10; Money cash = 11; }
  repeated sint32 deltas = 12;
  repeated fixed64 places = 13 [packed = false];
  google.protobuf.Timestamp at = 14;
  google.protobuf.Duration took = 15;
  google.protobuf.StringValue note = 16;
  google.protobuf.Struct extra = 17;
  google.protobuf.Any detail = 18;
  bool sure = 19;
  sfixed32 low = 20;
  Line line = 21;
  optional int32 maybe = 22;
}
"""
MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; string currency = 2; }'
REFERENCES = {"money.proto": MONEY}
OLD = """
syntax = "proto2";
message Old {
  required group Part = 1 { optional int32 n = 1; repeated group Inner = 2 { optional string s = 1; } }
  extensions 100 to 200;
  message Other { optional string t = 1; }
}
extend Old { optional int64 extra = 100; }
"""


def classes(text: str, references: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Message classes of a file by their full names."""
    own, imports = descriptors(Document(text, references or {}))
    pool, files = DescriptorPool(), [*imports.values()]
    named = FileDescriptorProto()
    named.CopyFrom(own)
    named.name = "sample.proto"
    for file in (*files, named):
        pool.Add(file)
    found: dict[str, Any] = {}

    def add(message: Any) -> None:
        found[message.full_name] = GetMessageClass(message)
        for each in message.nested_types:
            add(each)

    for file in (*files, named):
        for message in pool.FindFileByName(file.name).message_types_by_name.values():
            add(message)
    return found
