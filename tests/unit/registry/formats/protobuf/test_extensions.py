"""``format=ignore_extensions``: a text that clients without the extensions can read."""

from __future__ import annotations

from tidelog.registry.formats import Document
from tidelog.registry.formats.protobuf.schema_format import canonical, formatted

TEXT = """
syntax = "proto2";
import "google/protobuf/descriptor.proto";
import "confluent/meta.proto";
extend google.protobuf.FieldOptions { optional string note = 50000; }
message M {
  option (odd).part = 1;
  option deprecated = true;
  extensions 100 to 200;
  optional int32 a = 1 [(note) = "x", deprecated = true, (confluent.field_meta).tags = "PII"];
  oneof o { string z = 2 [(note) = "y"]; }
  message Inner { extend M { optional int32 more = 101; } optional int32 q = 1; }
  enum E { option (odd) = 1; NONE = 0 [(odd) = 2]; }
}
service S { option (odd) = 1; rpc Do (M) returns (M) { option (odd) = 1; } }
"""
PLAIN = """
syntax = "proto2";
import "google/protobuf/descriptor.proto";
import "confluent/meta.proto";
message M {
  option deprecated = true;
  optional int32 a = 1 [deprecated = true, (confluent.field_meta).tags = "PII"];
  oneof o { string z = 2; }
  message Inner { optional int32 q = 1; }
  enum E { NONE = 0; }
}
service S { rpc Do (M) returns (M); }
"""


def test_extensions_and_custom_options_are_left_out_and_confluents_stay() -> None:
    plain = canonical(Document(PLAIN), normalize=False, new=False)
    assert formatted(Document(TEXT), "ignore_extensions") == plain
    assert formatted(Document(PLAIN), "ignore_extensions") == plain
    assert "note" in formatted(Document(TEXT), "default")
