"""Tags in Protobuf schemas, in a text and in a descriptor of protoc."""

from __future__ import annotations

import base64

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tidelog.registry.formats import Document
from tidelog.registry.formats.protobuf import tags
from tidelog.registry.formats.protobuf.schema_format import tagged
from tidelog.registry.formats.tagging import Tagged

TEXT = """
syntax = "proto3";
package shop;
import "confluent/meta.proto";
message Person {
  option (confluent.message_meta).tags = "PII";
  option (confluent.message_meta) = { tags: ["GDPR", "PII"], doc: "who" };
  int32 age = 1 [(.confluent.field_meta).tags = "PII"];
  oneof place { string city = 2 [(confluent.field_meta) = { tags: "PLACE" }]; }
  string plain = 3 [(other.field_meta).tags = "PII"];
  message Inner { string q = 1 [(confluent.field_meta) = { tags: "PII" }, (confluent.field_meta).doc = "x"]; }
}
"""


def test_options_of_messages_and_fields_are_tags() -> None:
    text = TEXT.replace(' [(other.field_meta).tags = "PII"]', "")
    assert list(tagged(Document(text))) == [
        Tagged("Person", False, ("PII", "GDPR")),
        Tagged("Person.age", True, ("PII",)),
        Tagged("Person.city", True, ("PLACE",)),
        Tagged("Person.Inner.q", True, ("PII",)),
    ]
    assert list(tagged(Document(TEXT))) == list(tagged(Document(text)))


def test_an_extension_in_a_descriptor_is_one_too() -> None:
    file = FileDescriptorProto(package="shop", syntax="proto3", dependency=["confluent/meta.proto"])
    message = file.message_type.add(name="Person")
    meta = b"\x1a\x03PII"  # field 3 of confluent.Meta
    message.options.MergeFromString(b"\x82\x44" + bytes([len(meta)]) + meta)  # field 1088
    found = tagged(Document(base64.b64encode(file.SerializeToString()).decode()))
    assert list(found) == [Tagged("Person", False, ("PII",))]
    assert tags._encoded(b"\x1a\x7f") == []


def test_a_text_that_is_no_meta_has_no_tags() -> None:
    text = 'syntax = "proto3"; message M { option (confluent.message_meta) = { odd: 1 }; }'
    assert list(tagged(Document(text))) == []
