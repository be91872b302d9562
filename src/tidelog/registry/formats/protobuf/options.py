"""Options of ``.proto`` files: those of descriptor.proto have typed values, all others are kept as they were written.

A value is what stands in the file: a kind of token, and its number, text (bytes) or name; for a message in braces its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import UninterpretedOption

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats.protobuf.tokens import FLOAT, INT, NAME, TEXT, Tokens, escaped, number

BRACES = "braces"
Value = tuple[str, Any]
Part = tuple[str, bool]
"""A part of an option's name, and whether it is that of an extension, in parentheses."""
_F = FieldDescriptor
_INTEGERS = (_F.CPPTYPE_INT32, _F.CPPTYPE_INT64, _F.CPPTYPE_UINT32, _F.CPPTYPE_UINT64)
_HIDDEN = ("uninterpreted_option", "map_entry")


def read_option(tokens: Tokens) -> tuple[list[Part], Value]:
    """A name, ``=`` and a value."""
    parts: list[Part] = []
    while True:
        if tokens.accept("("):
            parts.append((tokens.dotted(), True))
            tokens.expect(")")
        else:
            parts.append((tokens.name(), False))
        if not tokens.accept("."):
            break
    tokens.expect("=")
    return parts, read_value(tokens)


def read_value(tokens: Tokens) -> Value:
    """A constant."""
    if tokens.accept("{"):
        return BRACES, tokens.skipped_braces()
    if tokens.peek.kind == TEXT:
        return TEXT, tokens.text()
    negative = tokens.accept("-")
    if not negative:
        tokens.accept("+")
    token = tokens.peek
    if token.kind == INT:
        found = number(tokens.take().value)
        return INT, -found if negative else found
    if token.kind == FLOAT or (token.kind == NAME and token.value in ("inf", "nan")):
        found_float = float(tokens.take().value.rstrip("fF") if token.kind == FLOAT else token.value)
        return FLOAT, -found_float if negative else found_float
    if token.kind == NAME and not negative:
        return NAME, tokens.dotted()
    raise tokens.wrong("a value is expected")


def set_option(options: Any, parts: list[Part], value: Value) -> None:
    """Set an option in a message of options."""
    name, extension = parts[0]
    field = None if extension else options.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        _keep(options, parts, value)
    elif field.cpp_type == _F.CPPTYPE_MESSAGE and value[0] == BRACES and len(parts) == 1:
        _merge(getattr(options, name).add() if field.is_repeated else getattr(options, name), value[1])
    elif field.cpp_type == _F.CPPTYPE_MESSAGE and not field.is_repeated:
        if len(parts) < 2:
            raise InvalidSchema(f"the option {name} has parts: write {name}.part")
        set_option(getattr(options, name), parts[1:], value)
    elif field.is_repeated:
        getattr(options, name).append(_typed(field, value))
    else:
        setattr(options, name, _typed(field, value))


def _merge(message: Any, text: str) -> None:
    try:
        text_format.Merge(text, message)
    except text_format.ParseError as problem:
        raise InvalidSchema(f"{text[:80]!r} is no {message.DESCRIPTOR.name}: {problem}") from problem


def _typed(field: Any, value: Value) -> Any:
    kind, found = value
    if field.cpp_type == _F.CPPTYPE_BOOL and kind == NAME and found in ("true", "false"):
        return found == "true"
    if field.cpp_type == _F.CPPTYPE_STRING and kind == TEXT:
        return found if field.type == _F.TYPE_BYTES else found.decode("utf-8", "replace")
    if field.cpp_type == _F.CPPTYPE_ENUM and kind == NAME and found in field.enum_type.values_by_name:
        return field.enum_type.values_by_name[found].number
    if field.cpp_type in _INTEGERS and kind == INT and -(1 << 31) <= found < 1 << 31:
        return found
    raise InvalidSchema(f"{found!r} is no value of the option {field.name}")


def _keep(options: Any, parts: list[Part], value: Value) -> None:
    if not any(each.name == "uninterpreted_option" for each in options.DESCRIPTOR.fields):
        raise InvalidSchema(f"there is no option {'.'.join(name for name, _ in parts)}")
    kind, found = value
    kept = UninterpretedOption()
    for name, extension in parts:
        kept.name.add(name_part=name, is_extension=extension)
    if kind == NAME:
        kept.identifier_value = found
    elif kind == TEXT:
        kept.string_value = found
    elif kind == FLOAT:
        kept.double_value = found
    elif kind == BRACES:
        kept.aggregate_value = found
    elif 0 <= found < 1 << 64:
        kept.positive_int_value = found
    elif -(1 << 63) <= found < 0:
        kept.negative_int_value = found
    else:
        raise InvalidSchema(f"{found} has more than 64 bits")
    options.uninterpreted_option.append(kept)


def written_options(options: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values as they are written in a file, in the order of their numbers, then those that were kept."""
    for field, value in options.ListFields():
        if field.is_extension or field.name in _HIDDEN:
            continue
        if field.cpp_type == _F.CPPTYPE_MESSAGE:
            if field.is_repeated:
                yield from (
                    (prefix + field.name, f"{{ {text_format.MessageToString(each, as_one_line=True)} }}") for each in value
                )
            else:
                yield from written_options(value, f"{prefix}{field.name}.")
            continue
        for each in value if field.is_repeated else [value]:
            yield prefix + field.name, _written(field, each)
    for kept in getattr(options, "uninterpreted_option", ()):
        name = ".".join(f"({part.name_part})" if part.is_extension else part.name_part for part in kept.name)
        yield name, _written_kept(kept)


def _written(field: Any, value: Any) -> str:
    if field.cpp_type == _F.CPPTYPE_BOOL:
        return "true" if value else "false"
    if field.cpp_type == _F.CPPTYPE_ENUM:
        return str(field.enum_type.values_by_number[value].name)
    if field.cpp_type == _F.CPPTYPE_STRING:
        return escaped(value if isinstance(value, bytes) else value.encode())
    return str(value)


def _written_kept(kept: UninterpretedOption) -> str:
    if kept.HasField("aggregate_value"):
        return f"{{ {kept.aggregate_value} }}"
    if kept.HasField("string_value"):
        return escaped(kept.string_value)
    for name in ("identifier_value", "positive_int_value", "negative_int_value", "double_value"):
        if kept.HasField(name):
            value = getattr(kept, name)
            return repr(value) if name == "double_value" else str(value)
    return '""'
