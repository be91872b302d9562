"""What the generator knows of a message before it writes code: its structures, their versions, names, types and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from tidelog.protocol.schema import FIXED_WIDTHS, FOREVER, Field, Message, Versions, intersect

PYTHON = {"bool": "bool", "string": "str", "bytes": "bytes", "uuid": "bytes", "records": "Buffer", "float64": "float"}


@dataclass
class Struct:
    """A class to write: the message itself, or a structure in it."""

    message: Message
    name: str
    fields: tuple[Field, ...]
    versions: Versions
    classes: dict[str, str]
    main: bool

    @property
    def cls(self) -> str:
        return self.message.name if self.main else self.classes[self.name]

    @property
    def flexible(self) -> str:
        """``True``, ``False`` or an expression."""
        low, high = intersect(self.versions, self.message.flexible)
        if low > high:
            return "False"
        return "True" if low == self.versions[0] else "flexible"

    def nullable(self, of: Field) -> Versions:
        return intersect(of.nullable, intersect(of.versions, self.versions))


def effective(message: Message) -> dict[str, Versions]:
    """For each structure the versions of the message in which it can occur."""
    found: dict[str, Versions] = {}

    def walk(fields: tuple[Field, ...], within: Versions) -> None:
        for f in fields:
            low, high = intersect(f.versions, within)
            if f.is_struct and low <= high:
                known = found.get(f.element, (low, high))
                found[f.element] = (min(low, known[0]), max(high, known[1]))
                walk(message.structs[f.element], (low, high))

    walk(message.fields, message.versions)
    return found


def structs_of(message: Message, classes: dict[str, str]) -> Iterator[Struct]:
    """The message, then its structures in the order in which they are met."""

    def live(fields: tuple[Field, ...], within: Versions) -> tuple[Field, ...]:
        return tuple(f for f in fields if (v := intersect(f.versions, within))[0] <= v[1])

    yield Struct(message, message.name, live(message.fields, message.versions), message.versions, classes, main=True)
    for name, versions in effective(message).items():
        yield Struct(message, name, live(message.structs[name], versions), versions, classes, main=False)


def condition(of: Versions, within: Versions) -> str:
    """An expression that is true in ``of``; empty when that is all of ``within``."""
    low, high = intersect(of, within)
    if (low, high) == within:
        return ""
    if high == within[1]:
        return f"version >= {low}"
    if low == within[0]:
        return f"version <= {high}"
    return f"version == {low}" if low == high else f"{low} <= version <= {high}"


def smallest(struct: Struct) -> tuple[int, int]:
    """The least number of bytes of a structure, in non-flexible and in flexible versions."""
    least = {False: FOREVER, True: FOREVER}
    everything = {s.name: s for s in structs_of(struct.message, struct.classes)}

    def size(of: Struct, version: int, flexible: bool) -> int:
        total = 1 if flexible else 0
        for f in of.fields:
            if not f.versions[0] <= version <= f.versions[1] or f.tagged[0] <= version <= f.tagged[1]:
                continue
            if f.type in FIXED_WIDTHS:
                total += FIXED_WIDTHS[f.type]
            elif f.is_array or f.type in ("bytes", "records"):
                total += 1 if flexible else 4
            elif f.type == "string":
                total += 1 if flexible and not f.never_flexible else 2
            elif f.nullable[0] <= version <= f.nullable[1]:
                total += 1
            else:
                total += size(everything[f.type], version, flexible)
        return max(total, 1)

    for version in range(struct.versions[0], struct.versions[1] + 1):
        flexible = struct.message.flexible[0] <= version <= struct.message.flexible[1]
        least[flexible] = min(least[flexible], size(struct, version, flexible))
    return least[False], least[True]


def python_type(struct: Struct, f: Field) -> str:
    """The annotation of a field."""
    name = struct.classes[f.element] if f.is_struct else PYTHON.get(f.element, "int")
    if f.is_array:
        name = f"list[{name}]"
    low, high = struct.nullable(f)
    return f"{name} | None" if low <= high else name


def default(struct: Struct, f: Field) -> str:
    """The default as an expression that makes a fresh value."""
    low, high = struct.nullable(f)
    if f.default == "null" or (f.type == "records" and low <= high):
        return "None"
    if f.is_array:
        return "[]"
    if f.is_struct:
        return f"{struct.classes[f.element]}()"
    if f.type == "bool":
        return "True" if f.default == "true" else "False"
    if f.type == "float64":
        return repr(float(f.default or 0))
    if f.type in FIXED_WIDTHS and f.type != "uuid":
        return str(int(f.default or "0", 0))
    return {"uuid": "ZERO_UUID", "string": repr(f.default).replace("'", '"')}.get(f.type, 'b""')


def segments(struct: Struct, f: Field) -> list[tuple[Versions, bool, bool]]:
    """(versions, present, nullable), newest first, neighbours that are alike made one."""
    low, high = struct.versions
    facts = [
        (v, f.versions[0] <= v <= f.versions[1], f.nullable[0] <= v <= f.nullable[1] and f.versions[0] <= v <= f.versions[1])
        for v in range(high, low - 1, -1)
    ]
    runs = []
    for (present, nullable), group in groupby(facts, key=lambda fact: fact[1:]):
        versions = [fact[0] for fact in group]
        runs.append(((versions[-1], versions[0]), present, nullable))
    return runs


def tagged(f: Field) -> bool:
    return f.tagged[0] <= f.tagged[1]


def runs_of(struct: Struct) -> list[list[Field]]:
    """Fields that are not tagged, in order; neighbours of fixed width that are in the same versions go together."""
    result: list[list[Field]] = []
    for f in struct.fields:
        if tagged(f):
            assert intersect(f.tagged, struct.versions) == intersect(f.versions, struct.versions), (
                f"{f.name} is tagged in some versions only"
            )
            continue
        previous = result[-1] if result else None
        if (
            previous
            and f.type in FIXED_WIDTHS
            and previous[0].type in FIXED_WIDTHS
            and intersect(previous[0].versions, struct.versions) == intersect(f.versions, struct.versions)
        ):
            previous.append(f)
        else:
            result.append([f])
    return result


def class_names(messages: list[Message]) -> list[dict[str, str]]:
    """Per message its structures' class names; what request and response both have is prefixed with Request or Response."""
    found = [list(effective(m)) for m in messages]
    result = []
    for message, names in zip(messages, found, strict=True):
        others = {n for m, ns in zip(messages, found, strict=True) if m is not message for n in ns} | {m.name for m in messages}
        result.append({n: f"{message.kind.capitalize()}{n}" if n in others else n for n in names})
    return result
