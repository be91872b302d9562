"""Files that a ``.proto`` may import without naming a reference: those of protobuf, of Google's common types, and Confluent's."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tidelog.registry.formats.protobuf.parsing import parse
from tidelog.registry.formats.protobuf.resolving import Symbols, resolve

_CONFLUENT = {
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """,
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
}
_PYTHON = ("google/protobuf/", "google/type/")


@lru_cache(maxsize=64)
def built_in(name: str) -> FileDescriptorProto | None:
    """The descriptor of such a file, with the name; None if there is none."""
    if name in _CONFLUENT:
        file = parse(_CONFLUENT[name])
        imports = [found for each in file.dependency if (found := built_in(each)) is not None]
        resolve(file, Symbols([file, *imports]))
    elif name.startswith(_PYTHON) and name.endswith(".proto") and name.replace("/", "").removesuffix(".proto").isidentifier():
        try:
            module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        except ModuleNotFoundError:
            return None
        file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    else:
        return None
    file.name = name
    return file
