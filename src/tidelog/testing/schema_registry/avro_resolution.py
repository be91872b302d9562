"""Whether a reader's Avro schema can read data of a writer's: the rules of schema resolution, without a parser.

Both schemas are plain JSON that a parser has accepted. Reasons begin with the words that Confluent's registry uses for them, so
that a search for them succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Named = tuple[Any, list[Any]]
"""A schema and the schemas that it refers to."""
_PROMOTED = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""Written type -> the types that it can be read as."""
_MISSING = object()


@dataclass(slots=True, eq=False)
class _Type:
    kind: str
    name: str = ""
    aliases: frozenset[str] = frozenset()
    fields: list[_Field] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default: object = _MISSING
    size: int = 0
    inner: list[_Type] = field(default_factory=list)
    """Items, values, or the branches of a union."""


@dataclass(slots=True, eq=False)
class _Field:
    name: str
    type: _Type
    aliases: frozenset[str]
    has_default: bool


def differences(reader: Named, writer: Named) -> list[str]:
    """What prevents reading; empty when ``reader`` can read everything that ``writer`` writes."""
    return _Check().check(_read(reader), _read(writer), "")


def _read(named: Named) -> _Type:
    schema, references = named
    names: dict[str, _Type] = {}
    for each in references:
        _type_of(each, "", names)
    return _type_of(schema, "", names)


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _type_of(node: Any, space: str, names: dict[str, _Type]) -> _Type:
    if isinstance(node, str):
        return names.get(_full(node, space)) or names.get(node) or _Type(node)
    if isinstance(node, list):
        return _Type("union", inner=[_type_of(each, space, names) for each in node])
    kind = node["type"]
    if not isinstance(kind, str):
        return _type_of(kind, space, names)
    if kind in ("record", "error", "enum", "fixed"):
        return _named(node, kind, space, names)
    if kind in ("array", "map"):
        return _Type(kind, inner=[_type_of(node["items" if kind == "array" else "values"], space, names)])
    return _type_of(kind, space, names)


def _named(node: dict[str, Any], kind: str, space: str, names: dict[str, _Type]) -> _Type:
    space = str(node["name"]).rpartition(".")[0] or node.get("namespace", space)
    name = _full(node["name"], space)
    result = _Type("record" if kind == "error" else kind, name, _aliases(node, space))
    names[name] = result
    if result.kind == "record":
        result.fields = [
            _Field(each["name"], _type_of(each["type"], space, names), _aliases(each, ""), "default" in each)
            for each in node["fields"]
        ]
    elif kind == "enum":
        result.symbols = list(node["symbols"])
        result.default = node.get("default", _MISSING)
    else:
        result.size = node["size"]
    return result


def _aliases(node: dict[str, Any], space: str) -> frozenset[str]:
    return frozenset(_full(name, space) for name in node.get("aliases", ()))


class _Check:
    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()
        """Pairs in progress or done: a type that contains itself is compared once."""

    def check(self, reader: _Type, writer: _Type, path: str) -> list[str]:
        if writer.kind == "union":
            return [
                f"MISSING_UNION_BRANCH at {path or '/'}: the reader has no type for {branch.name or branch.kind}, branch {index}"
                for index, branch in enumerate(writer.inner)
                if self.check(reader, branch, f"{path}/{index}")
            ]
        if reader.kind == "union":
            if any(not self.check(branch, writer, path) for branch in reader.inner):
                return []
            return [f"MISSING_UNION_BRANCH at {path or '/'}: the reader's union has no type for {writer.name or writer.kind}"]
        if reader.kind != writer.kind:
            if reader.kind in _PROMOTED.get(writer.kind, ()):
                return []
            return [f"TYPE_MISMATCH at {path or '/'}: {reader.kind} cannot read {writer.kind}"]
        if reader.kind in ("array", "map"):
            return self.check(reader.inner[0], writer.inner[0], f"{path}/{'items' if reader.kind == 'array' else 'values'}")
        if reader.name != writer.name and writer.name not in reader.aliases:
            return [f"NAME_MISMATCH at {path or '/'}: {reader.name} cannot read {writer.name}"]
        return self._same_name(reader, writer, path)

    def _same_name(self, reader: _Type, writer: _Type, path: str) -> list[str]:
        if reader.kind == "fixed" and reader.size != writer.size:
            return [f"FIXED_SIZE_MISMATCH at {path or '/'}: {reader.size} bytes cannot read {writer.size}"]
        if reader.kind == "enum":
            missing = sorted(set(writer.symbols) - set(reader.symbols))
            if missing and reader.default is _MISSING:
                return [f"MISSING_ENUM_SYMBOLS at {path or '/'}: the reader has neither {', '.join(missing)} nor a default"]
        if reader.kind != "record" or (id(reader), id(writer)) in self._seen:
            return []
        self._seen.add((id(reader), id(writer)))
        reasons = list(self._fields(reader, writer, path))
        if reasons:
            self._seen.discard((id(reader), id(writer)))
        return reasons

    def _fields(self, reader: _Type, writer: _Type, path: str) -> Iterable[str]:
        written = {each.name: each for each in writer.fields}
        for index, each in enumerate(reader.fields):
            found = next((written[name] for name in (each.name, *sorted(each.aliases)) if name in written), None)
            at = f"{path}/fields/{index}"
            if found is not None:
                yield from self.check(each.type, found.type, f"{at}/type")
            elif not each.has_default:
                yield f"READER_FIELD_MISSING_DEFAULT_VALUE at {at}: {each.name} is not written, and has no default"
