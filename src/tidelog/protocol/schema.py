"""The language of ``definitions/``: the properties of a message, and the parser.

A definition is one line per message and one per field, indented by depth::

    request ProduceRequest key=0 versions=3-13 flexible=9+ listeners=broker
      TransactionalId string 3+ null=3+ default=null
      TopicData []TopicProduceData 3+
        Name string 0-12 ignorable

``struct`` lines below a message hold structures that several of its fields use. Only the generator, the tests and tools that
print messages read definitions; a node runs the code generated from them. Terms are those of Kafka's message format: ``tag`` is
the field's number in the tag section, ``null`` the versions in which it may be null, ``ignorable`` says that a value which the
version cannot carry is dropped instead of refused, ``secret`` that ``repr`` hides the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

NEVER = (0, -1)
FOREVER = 32767

FIXED_WIDTHS = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
"""Types with a fixed encoded size."""

Versions = tuple[int, int]
"""First and last version, both included; empty when the last is smaller."""


def parse_versions(text: str) -> Versions:
    """``3``, ``3+``, ``3-13`` or ``none``."""
    if text == "none":
        return NEVER
    if text.endswith("+"):
        return int(text[:-1]), FOREVER
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def intersect(a: Versions, b: Versions) -> Versions:
    """The versions in both ranges."""
    return max(a[0], b[0]), min(a[1], b[1])


def snake_case(name: str) -> str:
    """``TopicData`` -> ``topic_data``, ``KRaftVersion`` -> ``kraft_version``."""
    name = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``fields`` is empty unless the type is an inline structure."""

    name: str
    type: str
    versions: Versions
    nullable: Versions = NEVER
    tagged: Versions = NEVER
    tag: int = -1
    default: str = ""
    ignorable: bool = False
    never_flexible: bool = False
    secret: bool = False
    """A password, a key, a token, or bytes that may hold one: absent from ``repr``, and so from logs and tracebacks."""
    fields: tuple[Field, ...] = ()

    @property
    def element(self) -> str:
        """The type of the elements of an array, or the type itself."""
        return self.type.removeprefix("[]")

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def is_struct(self) -> bool:
        """Whether the field is a structure or an array of them."""
        return self.element[0].isupper()

    @property
    def attribute(self) -> str:
        """Its name in Python."""
        return snake_case(self.name)


@dataclass(frozen=True, slots=True)
class Message:
    """One message: a request, a response, a header, a record, or plain data."""

    kind: str
    name: str
    key: int
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    structs: dict[str, tuple[Field, ...]]
    listeners: tuple[str, ...] = ()
    latest_unstable: bool = False

    @property
    def module(self) -> str:
        """Its module under ``messages/``; a request and its response share one."""
        name = self.name
        if self.kind in ("request", "response"):
            name = name.removesuffix("Request").removesuffix("Response")
        return snake_case(name)


@dataclass(slots=True)
class _Line:
    depth: int
    words: list[str]
    below: list[_Line] = field(default_factory=list)


def parse(text: str) -> list[Message]:
    """The messages of one definitions file. ValueError names a malformed line."""
    return [_message(line) for line in _tree(text.splitlines())]


def _tree(lines: Iterable[str]) -> list[_Line]:
    roots: list[_Line] = []
    path: list[_Line] = []
    for number, text in enumerate(lines, 1):
        words = text.split()
        if not words or words[0].startswith("#"):
            continue
        line = _Line((len(text) - len(text.lstrip())) // 2, words)
        if line.depth > len(path):
            raise ValueError(f"line {number} is indented by more than one step: {text!r}")
        del path[line.depth :]
        (path[-1].below if path else roots).append(line)
        path.append(line)
    return roots


def _options(words: Iterable[str]) -> dict[str, str]:
    return {name: value or "yes" for name, _, value in (word.partition("=") for word in words)}


def _message(line: _Line) -> Message:
    kind, name, *rest = line.words
    options = _options(rest)
    structs = {below.words[1]: _fields(below.below) for below in line.below if below.words[0] == "struct"}
    fields = _fields(below for below in line.below if below.words[0] != "struct")
    for nested in (*fields, *(f for members in structs.values() for f in members)):
        structs.update(_inline(nested))
    return Message(
        kind=kind,
        name=name,
        key=int(options.get("key", "-1")),
        versions=parse_versions(options["versions"]),
        flexible=parse_versions(options["flexible"]),
        fields=fields,
        structs=structs,
        listeners=tuple(options["listeners"].split(",")) if "listeners" in options else (),
        latest_unstable="latest-unstable" in options,
    )


def _fields(lines: Iterable[_Line]) -> tuple[Field, ...]:
    return tuple(_field(line) for line in lines)


def _field(line: _Line) -> Field:
    name, type_, versions, *rest = line.words
    options = _options(rest)
    tag, _, tagged = options.get("tag", "-1@none").partition("@")
    return Field(
        name=name,
        type=type_,
        versions=parse_versions(versions),
        nullable=parse_versions(options.get("null", "none")),
        tagged=parse_versions(tagged),
        tag=int(tag),
        default=options.get("default", ""),
        ignorable="ignorable" in options,
        never_flexible="never-flexible" in options,
        secret="secret" in options,
        fields=_fields(line.below),
    )


def _inline(of: Field) -> Iterator[tuple[str, tuple[Field, ...]]]:
    if of.fields:
        yield of.element, of.fields
        for nested in of.fields:
            yield from _inline(nested)
