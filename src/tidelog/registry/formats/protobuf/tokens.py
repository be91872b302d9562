"""The tokens of a ``.proto`` file."""

from __future__ import annotations

import re
from typing import NamedTuple

from tidelog.registry.errors import InvalidSchema

_TOKEN = re.compile(
    r"(?P<blank>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<float>(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)[fF]?)"
    r"|(?P<int>0[xX][0-9a-fA-F]+|\d+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"""|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"|(?P<sign>[{}\[\]()<>=;,.:+/-])",
    re.S | re.A,
)
_ESCAPE = re.compile(rb"\\(?:([abfnrtv\\'\"?])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_PLAIN = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
MAX_BITS = 1000
"""Of a whole number, which may be the default of a double."""
NAME, INT, FLOAT, TEXT, SIGN, END = "name", "int", "float", "text", "sign", "end"


class Token(NamedTuple):
    """``kind`` is one of the constants above; ``at`` the position in the file."""

    kind: str
    value: str
    at: int


class Tokens:
    """The tokens in order, with one of look-ahead. Errors are InvalidSchema and name the line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[Token] = []
        self._next = 0
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise InvalidSchema(f"line {self._line(at)} has {text[at : at + 20]!r}")
            if match.lastgroup != "blank":
                self._tokens.append(Token(match.lastgroup, match[0], at))
            at = match.end()
        self._tokens.append(Token(END, "", at))

    def _line(self, at: int) -> int:
        return self._text.count("\n", 0, at) + 1

    @property
    def peek(self) -> Token:
        """The next token, which stays."""
        return self._tokens[self._next]

    @property
    def after(self) -> Token:
        """The token after the next."""
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The next token."""
        token = self.peek
        if token.kind != END:
            self._next += 1
        return token

    def accept(self, *values: str) -> bool:
        """Take the next token if it is one of these names or signs."""
        if self.peek.kind in (NAME, SIGN) and self.peek.value in values:
            self._next += 1
            return True
        return False

    def expect(self, value: str) -> None:
        """Take this name or sign."""
        if not self.accept(value):
            raise self.wrong(f"{value!r} is expected")

    def wrong(self, why: str) -> InvalidSchema:
        """The error at the next token."""
        found = self.peek.value or "the end of the file"
        return InvalidSchema(f"line {self._line(self.peek.at)}: {why}, and there is {found!r}")

    def name(self) -> str:
        """A name without dots."""
        if self.peek.kind != NAME:
            raise self.wrong("a name is expected")
        return self.take().value

    def dotted(self) -> str:
        """A name that may have dots, and begin with one."""
        start = "." if self.accept(".") else ""
        parts = [self.name()]
        while self.peek.value == "." and self.after.kind == NAME:
            self.take()
            parts.append(self.name())
        return start + ".".join(parts)

    def integer(self) -> int:
        """A whole number with its sign."""
        sign = -1 if self.accept("-") else 1
        if self.peek.kind != INT:
            raise self.wrong("a whole number is expected")
        return sign * number(self.take().value)

    def text(self) -> bytes:
        """Texts that follow each other, without quotes and escapes."""
        if self.peek.kind != TEXT:
            raise self.wrong("a text is expected")
        parts = []
        while self.peek.kind == TEXT:
            parts.append(unescaped(self.take().value[1:-1]))
        return b"".join(parts)

    def skipped_braces(self) -> str:
        """What stands between braces, as it is, with blanks between the tokens. The first brace is taken already."""
        parts: list[str] = []
        depth = 1
        while True:
            token = self.take()
            if token.kind == END:
                raise self.wrong("'}' is expected")
            depth += (token.value == "{" and token.kind == SIGN) - (token.value == "}" and token.kind == SIGN)
            if not depth:
                return " ".join(parts)
            parts.append(token.value)


def number(text: str) -> int:
    """A whole number as it is written: decimal, hexadecimal, or octal with a leading 0."""
    try:
        found = int(text, 16 if text[:2] in ("0x", "0X") else 8 if len(text) > 1 and text[0] == "0" else 10)
    except ValueError as problem:
        raise InvalidSchema(f"{text[:20]} is no number") from problem
    if found.bit_length() > MAX_BITS:
        raise InvalidSchema(f"{text[:20]}... has more than {MAX_BITS} bits")
    return found


def unescaped(text: str) -> bytes:
    """The bytes that a quoted text stands for."""

    def plain(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return _PLAIN.get(match[1], match[1])
        if match[2]:
            return bytes([int(match[2], 8) & 255])
        if match[3]:
            return bytes([int(match[3], 16)])
        try:
            return chr(int(match[4] or match[5], 16)).encode()
        except (ValueError, OverflowError) as problem:
            raise InvalidSchema(f"{match[0].decode()} is no character") from problem

    return _ESCAPE.sub(plain, text.encode())


def escaped(value: bytes) -> str:
    """The bytes as a quoted text: printable ASCII as it is, the rest in octal."""
    special = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
    return '"' + "".join(special.get(each) or (chr(each) if 32 <= each < 127 else f"\\{each:03o}") for each in value) + '"'
