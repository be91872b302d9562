"""Parses lines of text into records for the console producer, with the properties of Kafka's ``LineMessageReader``.

Text stays bytes: everything except separators is passed on unchanged, in any encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.cli.refusal import CommandFailed

PROPERTIES = frozenset(
    {
        "parse.key",
        "parse.headers",
        "ignore.error",
        "key.separator",
        "headers.delimiter",
        "headers.separator",
        "headers.key.separator",
        "null.marker",
    }
)


class Line(NamedTuple):
    """A record as entered; None is null."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True)
class LineReader:
    """Splits lines of the form ``HEADERS delimiter KEY separator VALUE``."""

    parse_key: bool = False
    parse_headers: bool = False
    ignore_error: bool = False
    key_separator: bytes = b"\t"
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> LineReader:
        """CommandFailed for an unknown property, or equal separators."""
        unknown = sorted(properties.keys() - PROPERTIES)
        if unknown:
            raise CommandFailed(
                f"The reader has no property {', '.join(unknown)}. Those it has: {', '.join(sorted(PROPERTIES))}."
            )
        flags = {name.replace(".", "_"): properties[name].strip().lower() == "true" for name in _FLAGS if name in properties}
        texts = {name.replace(".", "_"): properties[name].encode() for name in PROPERTIES - _FLAGS if name in properties}
        reader = cls(**flags, **texts)  # type: ignore[arg-type]
        reader._check()
        return reader

    def _check(self) -> None:
        names = ["key.separator", "headers.delimiter", "headers.separator", "headers.key.separator"]
        used = [name for name in names if (self.parse_headers if name.startswith("headers") else self.parse_key)]
        for name in used:
            if not getattr(self, name.replace(".", "_")):
                raise CommandFailed(f"{name} is empty; give it at least one character.")
        pairs = [("headers.delimiter", "headers.separator"), ("headers.separator", "headers.key.separator")]
        pairs += [("headers.delimiter", "headers.key.separator"), *(("null.marker", name) for name in names)]
        for one, other in pairs:
            first, second = (getattr(self, name.replace(".", "_")) for name in (one, other))
            if first == second and (other in used) and (one in used or one == "null.marker"):
                raise CommandFailed(f"{one} and {other} may not be equal, and both are {first.decode(errors='replace')!r}.")

    def read(self, lines: Iterable[bytes]) -> Iterator[Line]:
        """A record for each line; CommandFailed names a line without a separator."""
        for number, line in enumerate(lines, 1):
            yield self.parse(line.removesuffix(b"\n").removesuffix(b"\r"), number)

    def parse(self, line: bytes, number: int) -> Line:
        """Parses one line, without its line end."""
        rest = line
        headers: bytes | None = None
        key: bytes | None = None
        if self.parse_headers:
            headers, rest = self._cut(rest, self.headers_delimiter, "headers delimiter", number, line)
        if self.parse_key:
            key, rest = self._cut(rest, self.key_separator, "key separator", number, line)
        return Line(self._or_null(key), self._or_null(rest), self._headers(headers, number))

    def _cut(self, text: bytes, separator: bytes, name: str, number: int, line: bytes) -> tuple[bytes | None, bytes]:
        before, found, after = text.partition(separator)
        if found:
            return before, after
        if self.ignore_error:
            return None, text
        raise CommandFailed(f"No {name} found on line number {number}: '{line.decode(errors='replace')}'")

    def _headers(self, text: bytes | None, number: int) -> list[tuple[str, str | bytes | None]]:
        if not text or text == self.null_marker:
            return []
        headers: list[tuple[str, str | bytes | None]] = []
        for pair in text.split(self.headers_separator):
            key, found, value = pair.partition(self.headers_key_separator)
            if not found and not self.ignore_error:
                shown = pair.decode(errors="replace")
                raise CommandFailed(
                    f"Line {number}: header '{shown}' has no separator between key and value; headers.key.separator sets it"
                )
            if key == self.null_marker:
                raise CommandFailed(f"A header's key is the null marker on line number {number}, and keys cannot be null.")
            headers.append((key.decode(errors="replace"), self._or_null(value) if found else None))
        return headers

    def _or_null(self, text: bytes | None) -> bytes | None:
        return None if text == self.null_marker else text


_FLAGS = frozenset({"parse.key", "parse.headers", "ignore.error"})
