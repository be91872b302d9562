"""Tags of messages and fields in a ``.proto`` file: the options ``(confluent.message_meta)`` and ``(confluent.field_meta)``.

They stand in a text as they were written, and in a descriptor as an extension.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from tidelog.registry.formats.protobuf.built_in import built_in
from tidelog.registry.formats.tagging import Tagged, check_path

_META = "confluent/meta.proto"
_NUMBER = 1088
"""Of the extension, in all kinds of options."""


def tagged(file: FileDescriptorProto) -> Iterator[Tagged]:
    """In the order of the file. Paths begin with the message, without the package."""
    return _messages(file.message_type, "")


def _messages(messages: Iterable[DescriptorProto], scope: str) -> Iterator[Tagged]:
    check_path(scope)
    for message in messages:
        path = scope + message.name
        if tags := _tags(message.options, "confluent.message_meta"):
            yield Tagged(path, False, tags)
        for field in message.field:
            if tags := _tags(field.options, "confluent.field_meta"):
                yield Tagged(f"{path}.{field.name}", True, tags)
        yield from _messages(message.nested_type, f"{path}.")


def _tags(options: Any, extension: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for kept in options.uninterpreted_option:
        names = [part.name_part.removeprefix(".") for part in kept.name]
        if names == [extension, "tags"]:
            found[kept.string_value.decode("utf-8", "replace")] = None
        elif names == [extension]:
            found |= dict.fromkeys(_written(kept.aggregate_value))
    # Where Confluent's own module is imported, the extension is a known field of the options: of an empty message it is not.
    for unknown in UnknownFieldSet(Empty.FromString(options.SerializeToString())):
        if unknown.field_number == _NUMBER and isinstance(unknown.data, bytes):
            found |= dict.fromkeys(_encoded(unknown.data))
    return tuple(found)


def _written(text: str) -> list[str]:
    """The tags in the text of a message in braces; none in one that is no Meta."""
    try:
        return list(text_format.Parse(text, _meta()()).tags)
    except text_format.ParseError:
        return []


def _encoded(data: bytes) -> list[str]:
    try:
        return list(_meta().FromString(data).tags)
    except DecodeError:
        return []


@lru_cache(maxsize=1)
def _meta() -> Any:
    """The class of ``confluent.Meta``."""
    known = built_in(_META)
    assert known is not None
    file = FileDescriptorProto(name=_META, package=known.package, syntax=known.syntax, message_type=known.message_type)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("confluent.Meta"))
