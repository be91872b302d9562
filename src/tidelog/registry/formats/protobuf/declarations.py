"""Enums, services, ranges and option statements of a ``.proto`` file. All errors are InvalidSchema, with the line."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, ServiceDescriptorProto

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats.protobuf.options import read_option, set_option
from tidelog.registry.formats.protobuf.tokens import NAME, TEXT, Tokens

MAX_FIELD = (1 << 29) - 1
MAX_ENUM = (1 << 31) - 1


def read_statement(tokens: Tokens, options: Any) -> None:
    """What follows the word ``option``."""
    parts, value = read_option(tokens)
    set_option(options, parts, value)
    tokens.expect(";")


def read_bracketed(tokens: Tokens, *targets: Any) -> None:
    """Options in brackets, if there are some, into each of the targets."""
    if tokens.accept("["):
        while True:
            parts, value = read_option(tokens)
            for each in targets:
                set_option(each, parts, value)
            if not tokens.accept(","):
                break
        tokens.expect("]")


def _ranges(tokens: Tokens, highest: int) -> list[tuple[int, int]]:
    """Inclusive ranges, up to the semicolon or the options."""
    found = []
    while True:
        start = end = tokens.integer()
        if tokens.accept("to"):
            end = highest if tokens.accept("max") else tokens.integer()
        if end < start or end > highest or abs(start) > highest + 1:
            raise tokens.wrong(f"the range ends at {end}")
        found.append((start, end))
        if not tokens.accept(","):
            return found


def read_reserved(tokens: Tokens, target: Any, highest: int, past_end: int) -> None:
    """Names or numbers. ``past_end``: 1 where the descriptor names the number after the range."""
    if tokens.peek.kind in (TEXT, NAME):
        while True:
            name = tokens.text().decode("utf-8", "replace") if tokens.peek.kind == TEXT else tokens.name()
            target.reserved_name.append(name)
            if not tokens.accept(","):
                break
    else:
        for start, end in _ranges(tokens, highest):
            target.reserved_range.add(start=start, end=end + past_end)
    tokens.expect(";")


def read_extensions(tokens: Tokens, message: DescriptorProto) -> None:
    """Ranges of numbers for extensions."""
    made = [message.extension_range.add(start=start, end=end + 1) for start, end in _ranges(tokens, MAX_FIELD)]
    read_bracketed(tokens, *(each.options for each in made))
    tokens.expect(";")


def read_enum(tokens: Tokens, enum: EnumDescriptorProto) -> None:
    """What follows the word ``enum``."""
    enum.name = tokens.name()
    tokens.expect("{")
    while not tokens.accept("}"):
        if tokens.accept(";"):
            continue
        keyword = tokens.peek.value if tokens.after.value != "=" else ""
        if keyword == "option":
            tokens.take()
            read_statement(tokens, enum.options)
        elif keyword == "reserved":
            tokens.take()
            read_reserved(tokens, enum, MAX_ENUM, 0)
        else:
            value = enum.value.add(name=tokens.name())
            tokens.expect("=")
            value.number = _enum_number(tokens)
            read_bracketed(tokens, value.options)
            tokens.expect(";")


def _enum_number(tokens: Tokens) -> int:
    number = tokens.integer()
    if not -MAX_ENUM - 1 <= number <= MAX_ENUM:
        raise InvalidSchema(f"{number} is no number of an enum")
    return number


def read_service(tokens: Tokens, service: ServiceDescriptorProto) -> None:
    """What follows the word ``service``."""
    service.name = tokens.name()
    tokens.expect("{")
    while not tokens.accept("}"):
        if tokens.accept(";"):
            continue
        if tokens.accept("option"):
            read_statement(tokens, service.options)
            continue
        tokens.expect("rpc")
        method = service.method.add(name=tokens.name())
        method.input_type, streams = _message_of(tokens)
        if streams:
            method.client_streaming = True
        tokens.expect("returns")
        method.output_type, streams = _message_of(tokens)
        if streams:
            method.server_streaming = True
        if not tokens.accept("{"):
            tokens.expect(";")
            continue
        while not tokens.accept("}"):
            if not tokens.accept(";"):
                tokens.expect("option")
                read_statement(tokens, method.options)


def _message_of(tokens: Tokens) -> tuple[str, bool]:
    """A message in parentheses, and whether it is a stream of them."""
    tokens.expect("(")
    streams = tokens.peek.value == "stream" and tokens.after.value != ")"
    if streams:
        tokens.take()
    name = tokens.dotted()
    tokens.expect(")")
    return name, streams
