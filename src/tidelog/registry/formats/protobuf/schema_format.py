"""``formats.Format`` for Protobuf."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Difference, Document
from tidelog.registry.formats.protobuf import tags
from tidelog.registry.formats.protobuf.built_in import built_in
from tidelog.registry.formats.protobuf.comparing import differences
from tidelog.registry.formats.protobuf.extensions import without_extensions
from tidelog.registry.formats.protobuf.parsing import parse
from tidelog.registry.formats.protobuf.printing import print_file
from tidelog.registry.formats.protobuf.resolving import Symbols, normalized, resolve
from tidelog.registry.formats.tagging import Tagged

SERIALIZED, IGNORE_EXTENSIONS = "serialized", "ignore_extensions"
_OWN_NAME = "this schema.proto"
_IMPLEMENTATION = (19000, 20000)
"""Numbers that belong to protobuf itself."""


def canonical(document: Document, *, normalize: bool, new: bool) -> str:
    """The text of a ``.proto`` file, or base64 where a text cannot hold it. New schemas pass protobuf's own checks."""
    file, imports = descriptors(document)
    if not file.IsInitialized():
        raise InvalidSchema(f"it lacks {', '.join(file.FindInitializationErrors()[:5])}")
    if new:
        _check(file, imports)
    symbols = Symbols([file, *imports.values()])
    text = print_file(file, symbols)
    if _same(text, file, symbols):
        return text
    if _descriptor(document.text) is None:
        raise InvalidSchema("it has a construct that cannot be kept")
    return base64.b64encode(file.SerializeToString(deterministic=True)).decode()


def compare(reader: Document, writer: Document, *, lenient: bool) -> list[Difference]:
    """See ``Format.compare``; there is one policy."""
    return differences(descriptors(reader)[0], descriptors(writer)[0])


def formatted(document: Document, form: str) -> str:
    """``serialized``: the base64 of a FileDescriptorProto; ``ignore_extensions``: a text without them."""
    if form == IGNORE_EXTENSIONS:
        file, imports = descriptors(document)
        return print_file(without_extensions(file), Symbols([file, *imports.values()]))
    if form == SERIALIZED:
        return base64.b64encode(descriptors(document)[0].SerializeToString(deterministic=True)).decode()
    return document.text


def tagged(document: Document) -> Iterable[Tagged]:
    """See ``Format.tagged``."""
    return tags.tagged(descriptors(document)[0])


def descriptors(document: Document) -> tuple[FileDescriptorProto, dict[str, FileDescriptorProto]]:
    """The descriptor with complete names, and those of what it imports, by their names. InvalidSchema."""
    file = _file(document.text)
    imports: dict[str, FileDescriptorProto] = {}
    for name, text in document.references.items():
        found = _file(text)
        _import(found, imports, document)
        resolve(found, Symbols([found, *imports.values()]))
        found.name = name
        imports[name] = found
    _import(file, imports, document)
    resolve(file, Symbols([file, *imports.values()]))
    return file, imports


def _import(file: FileDescriptorProto, imports: dict[str, FileDescriptorProto], document: Document) -> None:
    """Add the built-in files that a file imports. InvalidSchema for one that is neither built in nor a reference."""
    for name in file.dependency:
        if name in imports or name in document.references:
            continue
        found = built_in(name)
        if found is None:
            raise InvalidSchema(f"it imports {name}, which is not among its references")
        _import(found, imports, document)
        imports[name] = found


def _file(text: str) -> FileDescriptorProto:
    found = _descriptor(text)
    return normalized(parse(text) if found is None else found)


def _descriptor(text: str) -> FileDescriptorProto | None:
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return None
    return file if file.message_type or file.enum_type or file.extension else None


def _same(text: str, file: FileDescriptorProto, symbols: Symbols) -> bool:
    """Whether the text gives the same descriptor."""
    try:
        again = normalized(parse(text))
        resolve(again, symbols)
    except InvalidSchema:
        return False
    return bool(again.SerializeToString(deterministic=True) == file.SerializeToString(deterministic=True))


def _check_numbers(messages: Iterable[DescriptorProto]) -> None:
    """What protobuf's compiler refuses, and its descriptors do not: reserved numbers and names that are used."""
    for message in messages:
        ranges = sorted([(each.start, each.end) for each in message.reserved_range] + [_IMPLEMENTATION])
        starts, names = [start for start, _ in ranges], frozenset(message.reserved_name)
        ends = list(accumulate((end for _, end in ranges), max))
        for field in message.field:
            before = bisect_right(starts, field.number)
            if (before and field.number < ends[before - 1]) or field.name in names:
                raise InvalidSchema(f"{message.name}.{field.name} = {field.number} is reserved")
        _check_numbers(message.nested_type)


def _check(file: FileDescriptorProto, imports: dict[str, FileDescriptorProto]) -> None:
    """Let protobuf's own library read the descriptor: numbers used twice, names that clash and the like. InvalidSchema."""
    if not file.message_type and not file.enum_type and not file.extension:
        raise InvalidSchema("it declares neither a message nor an enum")
    _check_numbers(file.message_type)
    pool, added = DescriptorPool(), set()

    def add(name: str) -> None:
        if name not in added:
            added.add(name)
            for each in imports[name].dependency:
                if each in imports:
                    add(each)
            pool.AddSerializedFile(imports[name].SerializeToString())

    named = FileDescriptorProto()
    named.CopyFrom(file)
    named.name = _OWN_NAME
    try:
        for name in file.dependency:
            add(name)
        pool.AddSerializedFile(named.SerializeToString())
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidSchema(str(problem).replace(_OWN_NAME, "the schema")) from problem
