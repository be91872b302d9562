"""A descriptor without extensions, for clients that do not know them: ``extend``, ranges for extensions, and custom options."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

_KEPT = "confluent."
"""Options of this package stay: Confluent's clients read them."""


def without_extensions(file: FileDescriptorProto) -> FileDescriptorProto:
    """A copy. Options in a descriptor that protobuf's own file does not define are not in its text anyway."""
    result = FileDescriptorProto()
    result.CopyFrom(file)
    _remove(result)
    return result


def _remove(part: Any) -> None:
    for field, value in part.ListFields():
        if field.name in ("extension", "extension_range"):
            part.ClearField(field.name)
        elif field.name == "options":
            kept = [each for each in value.uninterpreted_option if _stays(each)]
            del value.uninterpreted_option[:]
            value.uninterpreted_option.extend(kept)
        elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                _remove(each)


def _stays(option: Any) -> bool:
    first = option.name[0]
    return not first.is_extension or first.name_part.removeprefix(".").startswith(_KEPT)
