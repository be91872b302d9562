"""Java's ``.properties`` files: reading and writing them, and ``--override key=value``.

The format is that of ``java.util.Properties.load``: ``=``, ``:`` or white space ends a key, ``#`` and ``!`` begin comments,
a backslash escapes, joins lines, or begins ``\\uXXXX``. The text is UTF-8, as Kafka's own tools read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidelog.model.errors import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!"}


def parse(text: str) -> dict[str, str]:
    """Keys and values of a file. The last of equal keys wins. ConfigError names the line that cannot be read."""
    result: dict[str, str] = {}
    for number, line in _logical_lines(text.removeprefix("\ufeff")):
        key_end, value_start = _split(line)
        try:
            result[_unescape(line[:key_end])] = _unescape(line[value_start:])
        except ValueError:
            raise ConfigError(
                f"Line {number} holds a \\u that is not followed by four hexadecimal digits: {line[:80]!r}."
            ) from None
    return result


def serialize(properties: Mapping[str, str]) -> str:
    """A file that ``parse`` and Java read back as the same keys and values, one a line."""
    return "".join(f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}\n" for key, value in properties.items())


def parse_overrides(pairs: Iterable[str]) -> dict[str, str]:
    """``key=value`` arguments of a command line; the last of equal keys wins. ConfigError for one without ``=`` or key."""
    result: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--override {pair!r} must be key=value.")
        result[key.strip()] = value.strip()
    return result


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor comments, with continuations joined, and the number of their first line."""
    pending = ""
    first = 0
    begun = False
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = natural.lstrip(_BLANKS)
        if not begun:
            if not line or line[0] in "#!":
                continue
            first = number
        begun = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        pending += line[:-1] if begun else line
        if not begun:
            if pending:
                yield first, pending
            pending = ""
    if pending:
        yield first, pending


def _split(line: str) -> tuple[int, int]:
    """Where the key ends and where the value starts."""
    index = 0
    while index < len(line) and line[index] not in "=:" + _BLANKS:
        index += 2 if line[index] == "\\" else 1
    key_end = min(index, len(line))
    index = key_end
    while index < len(line) and line[index] in _BLANKS:
        index += 1
    if index < len(line) and line[index] in "=:":
        index += 1
        while index < len(line) and line[index] in _BLANKS:
            index += 1
    return key_end, index


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char != "\\" or index == len(text):
            out.append("" if char == "\\" else char)
            continue
        char = text[index]
        index += 1
        if char == "u":
            digits = text[index : index + 4]
            if len(digits) != 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise ValueError(digits)
            out.append(chr(int(digits, 16)))
            index += 4
        else:
            out.append(_ESCAPES.get(char, char))
    # Java writes characters beyond U+FFFF as two escapes.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str, *, is_key: bool) -> str:
    escaped = "".join(_ESCAPED.get(char, char) for char in text)
    if is_key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped
