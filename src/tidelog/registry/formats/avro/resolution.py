"""Whether a reader's Avro schema can read all data of a writer's: the rules of schema resolution.

Records, enums and fixed are compared by their names without namespaces, or by an alias of the reader's. The words for
differences are those of Avro's Java library, so that a search for them succeeds.

Types may contain themselves: a pair in progress counts as readable. Where such a pair turns out not to be, the comparison runs
again with what it learned, until nothing changes. The number of steps is bounded: what takes more is incompatible, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from tidelog.registry.formats import Difference
from tidelog.registry.formats.avro.types import MISSING, Field, Type

_PROMOTED = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""Written type -> the types that it can be read as."""
MAX_STEPS = 100_000
MAX_KEPT = 100
"""Differences that one pair lists."""
MAX_SHOWN = 20
"""Symbols that one difference lists."""
_AGAIN = "see above"
"""Marks a pair inside itself, whose differences are listed where it began."""
Pair = tuple[int, int]


def differences(reader: Type, writer: Type) -> list[Difference]:
    """What prevents reading; empty when ``reader`` can read everything that ``writer`` writes."""
    failed: set[Pair] = set()
    steps = 0
    try:
        while True:
            check = _Check(failed, steps)
            found = check.check(reader, writer, "/")
            if check.failed == failed:
                return [each for each in found if each.info != _AGAIN] or found
            failed, steps = check.failed, check.steps
    except (_TooManySteps, RecursionError):
        why = f"the schemas are too entangled to compare in {MAX_STEPS} steps"
        return [Difference("COMPARISON_LIMIT_REACHED", "/", why)]


class _TooManySteps(Exception):
    """The comparison was given up."""


class _Check:
    def __init__(self, failed: set[Pair], steps: int) -> None:
        """``failed``: pairs of records that an earlier run found incompatible; ``steps``: those of earlier runs."""
        self._before = failed
        self.steps = steps
        self.failed = set(failed)
        self._done: dict[Pair, list[Difference]] = {}

    def _spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise _TooManySteps

    def check(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        self._spend(1)
        if writer.kind == "union":
            found = []
            for index, branch in enumerate(writer.inner):
                inner = self.check(reader, branch, _in(path, index))
                if inner and reader.kind == "union":
                    why = f"the reader's union has no type for {branch.full_name}"
                    inner = [
                        Difference("MISSING_UNION_BRANCH", _in(path, index), why, f"reader union lacking {branch.full_name}")
                    ]
                found += inner
                if len(found) >= MAX_KEPT:
                    break
            return found
        if reader.kind == "union":
            if any(not self.check(branch, writer, path) for branch in reader.inner):
                return []
            why = f"the reader's union has no type for {writer.full_name}"
            return [Difference("MISSING_UNION_BRANCH", path, why, f"reader union lacking {writer.full_name}")]
        mine, theirs = _plain(reader), _plain(writer)
        if mine != theirs:
            if mine in _PROMOTED.get(theirs, ()):
                return []
            info = f"reader type: {mine.upper()} not compatible with writer type: {theirs.upper()}"
            return [Difference("TYPE_MISMATCH", path, f"{mine} cannot read {theirs}", info)]
        if mine in ("array", "map"):
            return self.check(reader.inner[0], writer.inner[0], _in(path, "items" if mine == "array" else "values"))
        return self._named(reader, writer, path) if reader.name else []

    def _named(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        if reader.kind == "fixed":
            return [*_names(reader, writer, path), *_sizes(reader, writer, path)]
        if reader.kind == "enum":
            self._spend(len(writer.symbols) // 100)
            return [*_names(reader, writer, path), *_symbols(reader, writer, path)]
        return self._record(reader, writer, path)

    def _record(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        pair = (id(reader), id(writer))
        if pair in self._done:
            found = self._done[pair]
            if found or pair not in self._before:
                return found
            return [Difference("TYPE_MISMATCH", path, f"{reader.full_name} cannot read {writer.full_name}", _AGAIN)]
        self._done[pair] = []
        found = list(islice(chain(_names(reader, writer, path), self._fields(reader, writer, path)), MAX_KEPT))
        self._done[pair] = found
        if found:
            self.failed.add(pair)
        return found

    def _fields(self, reader: Type, writer: Type, path: str) -> Iterator[Difference]:
        written = {each.name: each for each in writer.fields}
        self._spend(len(written) // 100)
        for index, each in enumerate(reader.fields):
            at = _in(_in(path, "fields"), index)
            found = _written(each, written)
            if found is not None:
                yield from self.check(each.type, found.type, _in(at, "type"))
            elif each.default is MISSING:
                why = f"the field {each.name} is not written, and the reader has no default for it"
                yield Difference("READER_FIELD_MISSING_DEFAULT_VALUE", at, why, each.name)


def _names(reader: Type, writer: Type, path: str) -> Iterator[Difference]:
    if reader.name != writer.name and writer.full_name not in reader.aliases:
        why = f"{reader.full_name} cannot read {writer.full_name}"
        yield Difference("NAME_MISMATCH", _in(path, "name"), why, f"expected: {writer.full_name}")


def _sizes(reader: Type, writer: Type, path: str) -> Iterator[Difference]:
    if reader.size != writer.size:
        why = f"{reader.size} bytes cannot read {writer.size}"
        yield Difference("FIXED_SIZE_MISMATCH", _in(path, "size"), why, f"expected: {writer.size}, found: {reader.size}")


def _symbols(reader: Type, writer: Type, path: str) -> Iterator[Difference]:
    lacking = [each for each in writer.symbols if each not in reader.known_symbols]
    missing = ", ".join([*lacking[:MAX_SHOWN], *(["..."] if len(lacking) > MAX_SHOWN else [])])
    if missing and reader.default is MISSING:
        why = f"{reader.full_name} has neither the symbols {missing} nor a default"
        yield Difference("MISSING_ENUM_SYMBOLS", _in(path, "symbols"), why, f"[{missing}]")


def _written(each: Field, written: dict[str, Field]) -> Field | None:
    return next((written[name] for name in (each.name, *each.aliases) if name in written), None)


def _plain(kind: Type) -> str:
    return "record" if kind.kind == "error" else kind.kind


def _in(path: str, part: object) -> str:
    return f"{path.rstrip('/')}/{part}"
