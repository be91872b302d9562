"""What an option is: its name, type, default, bounds, who may change it when, and a sentence of our own about what it does here.

The tables (``broker``, ``topic_options``, ``group_options``, ``tidelog_options``) are rows of ``Option``; parsing, bounds,
DescribeConfigs, alter-time checks and docs/reference/configs.md all come from them. Names, types, defaults and bounds are those
of Apache Kafka 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import Final, Protocol

from tidelog.model.errors import ConfigError

HIDDEN = "[hidden]"
"""What is shown in place of a secret."""


class Password:
    """A secret that is only visible through ``secret``."""

    __slots__ = ("secret",)

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and self.secret == other.secret

    def __hash__(self) -> int:
        return hash(self.secret)

    def __repr__(self) -> str:
        return HIDDEN


Value = bool | int | float | str | tuple[str, ...] | Password | None
"""A parsed value; None is "not set"."""

_INT_BOUNDS: Final = {3: (-(2**31), 2**31 - 1), 4: (-(2**15), 2**15 - 1), 5: (-(2**63), 2**63 - 1)}
_BITS: Final = {3: 32, 4: 16, 5: 64}


class Type(IntEnum):
    """Type of a value; the number is the one in DescribeConfigs answers."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(StrEnum):
    """How likely it is that a person needs to think about it."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Dynamic(StrEnum):
    """Whether it can change while the node runs, and for whom (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Check(Protocol):
    """Bounds of a value."""

    def problem(self, value: Value) -> str | None:
        """What would have been accepted, when the value is not."""

    def __str__(self) -> str:
        """The bounds in the notation of Kafka's documentation."""


class Between:
    """A number from ``low`` to ``high``, both included; an end that is None is open. ``or_value`` is allowed besides."""

    __slots__ = ("high", "low", "or_value")

    def __init__(self, low: float | None, high: float | None = None, or_value: int | None = None) -> None:
        self.low = low
        self.high = high
        self.or_value = or_value

    def problem(self, value: Value) -> str | None:
        if not isinstance(value, int | float) or value == self.or_value:
            return None
        if (self.low is None or value >= self.low) and (self.high is None or value <= self.high):
            return None
        if self.high is None:
            return f"at least {self.low}"
        either = f", or {self.or_value}" if self.or_value is not None else ""
        return f"from {self.low} to {self.high}{either}"

    def __str__(self) -> str:
        if self.high is None:
            return f"[{self.low},...]"
        return f"[{self.low},...,{self.high}]" + (f" or {self.or_value}" if self.or_value is not None else "")


class OneOf:
    """A word from a list; for a LIST, every item is one of them."""

    __slots__ = ("any_case", "words")

    def __init__(self, *words: str, any_case: bool = False) -> None:
        self.words = words
        self.any_case = any_case

    def problem(self, value: Value) -> str | None:
        items = value if isinstance(value, tuple) else (value,)
        for item in items:
            if isinstance(item, str) and (item.upper() if self.any_case else item) not in self.words:
                return f"{'any' if isinstance(value, tuple) else 'one'} of {', '.join(self.words)}"
        return None

    def __str__(self) -> str:
        return ("(case insensitive) " if self.any_case else "") + f"[{', '.join(self.words)}]"


class NonEmpty:
    """A string that is not empty when it is set."""

    __slots__ = ()

    def problem(self, value: Value) -> str | None:
        return "a text that is not empty" if value == "" else None

    def __str__(self) -> str:
        return "non-empty string"


class ThrottledReplicas:
    """``partition:broker`` pairs, or ``*`` for all."""

    __slots__ = ()

    def problem(self, value: Value) -> str | None:
        if not isinstance(value, tuple) or value == ("*",):
            return None
        for item in value:
            partition, colon, broker = item.partition(":")
            if not (colon and partition.isdecimal() and broker.isdecimal()):
                return "pairs partition:broker separated by commas, or * for all replicas"
        return None

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


class Option:
    """One row of a table.

    ``falls_back_to`` are options that give the value while this one is not set, as (name, multiplier). ``inert`` says why
    tidelog accepts the option and does nothing with it yet. ``refuses`` says why a node does not start when it is set to
    something else than its default: what would be silently unprotected, ungoverned or lost.
    """

    __slots__ = (
        "attribute",
        "check",
        "default",
        "doc",
        "dynamic",
        "falls_back_to",
        "importance",
        "inert",
        "internal",
        "name",
        "refuses",
        "required",
        "type",
    )

    def __init__(
        self,
        name: str,
        type_: Type,
        default: Value,
        importance: Importance,
        dynamic: Dynamic,
        doc: str,
        *,
        check: Check | None = None,
        falls_back_to: Sequence[tuple[str, int]] = (),
        inert: str | None = None,
        refuses: str | None = None,
        internal: bool = False,
        required: bool = False,
    ) -> None:
        self.name = name
        self.attribute = name.replace(".", "_")
        self.type = type_
        self.default = default
        self.importance = importance
        self.dynamic = dynamic
        self.doc = doc
        self.check = check
        self.falls_back_to = falls_back_to
        self.inert = inert
        self.refuses = refuses
        self.internal = internal
        self.required = required

    def __repr__(self) -> str:
        return f"Option({self.name})"

    @property
    def sensitive(self) -> bool:
        """Whether the value is a secret."""
        return self.type is Type.PASSWORD

    def parse(self, text: str) -> Value:
        """The typed value of a text from a file, a flag or a request. ConfigError names option, text and what would do."""
        value = self._convert(text.strip() if self.type is not Type.PASSWORD else text)
        if self.check is not None and (wanted := self.check.problem(value)) is not None:
            raise self._refusal(text, wanted)
        return value

    def _convert(self, text: str) -> Value:
        kind = self.type
        if kind in _INT_BOUNDS:
            return self._integer(text)
        if kind is Type.BOOLEAN:
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise self._refusal(text, "true or false")
        if kind is Type.DOUBLE:
            try:
                return float(text)
            except ValueError:
                raise self._refusal(text, "a number") from None
        if kind is Type.LIST:
            return self._items(text)
        return Password(text) if kind is Type.PASSWORD else text

    def _integer(self, text: str) -> int:
        low, high = _INT_BOUNDS[self.type]
        digits = text[1:] if text[:1] in ("-", "+") else text
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 19) or not low <= int(text) <= high:
            raise self._refusal(text, f"a whole number of {_BITS[self.type]} bits")
        return int(text)

    def _items(self, text: str) -> tuple[str, ...]:
        if not text:
            return ()
        items = tuple(item.strip() for item in text.split(","))
        if "" in items:
            raise self._refusal(text, "a list separated by commas, without empty items")
        if len(set(items)) != len(items):
            # Kafka 4 still takes these, with a warning; the later one adds nothing.
            items = tuple(dict.fromkeys(items))
        return items

    def _refusal(self, text: str, wanted: str) -> ConfigError:
        shown = HIDDEN if self.sensitive else repr(text)
        return ConfigError(f"{self.name} is {shown}, but must be {wanted}.")


def value_text(value: Value) -> str | None:
    """A value as Kafka writes it in answers: ``true``, ``1.7976931348623157E308``, ``a,b``; None when not set."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _double_text(value)
    return HIDDEN if isinstance(value, Password) else ",".join(value)


def _double_text(value: float) -> str:
    """The shortest decimal in the notation of Java's Double: plain from 1e-3 to below 1e7, else digit, point, digits, E."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # one default in the table and no hot path: not worth its import at start

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{int(exponent) + len(digits) - 1}"


def table(*families: Sequence[Option]) -> dict[str, Option]:
    """Rows of all families by name, in the order of names. A name given twice is our bug."""
    rows = sorted((row for family in families for row in family), key=lambda row: row.name)
    result = {row.name: row for row in rows}
    assert len(result) == len(rows), "an option is declared twice"
    return result


BOOLEAN: Final = Type.BOOLEAN
STRING: Final = Type.STRING
INT: Final = Type.INT
SHORT: Final = Type.SHORT
LONG: Final = Type.LONG
DOUBLE: Final = Type.DOUBLE
LIST: Final = Type.LIST
CLASS: Final = Type.CLASS
PASSWORD: Final = Type.PASSWORD
HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW
READ_ONLY: Final = Dynamic.READ_ONLY
PER_BROKER: Final = Dynamic.PER_BROKER
CLUSTER: Final = Dynamic.CLUSTER_WIDE
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
MIB: Final = 1 << 20
AT_LEAST_0: Final = Between(0)
AT_LEAST_1: Final = Between(1)
