"""JSON whose numbers keep their digits, so that a value can be changed at some paths and written again.

Python's own reader turns 1.10 into 1.1 and 1e400 into infinity; here every number stays the text that it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

MAX_DEPTH: Final = 200
MASK: Final = "***"


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def loads(text: str) -> Any:
    """The value. ValueError when it is not JSON, or nested too deeply."""
    try:
        found = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def dumps(value: Any) -> str:
    """The shortest text of a value from ``loads``. ValueError when it is nested too deeply."""
    return "".join(_parts(value, 0))


def _parts(value: Any, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        raise ValueError(f"it has more than {MAX_DEPTH} levels")
    if isinstance(value, Number):
        yield str(value)
    elif isinstance(value, dict):
        yield "{"
        for position, (name, each) in enumerate(value.items()):
            yield ("," if position else "") + json.dumps(name, ensure_ascii=False) + ":"
            yield from _parts(each, depth + 1)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for position, each in enumerate(value):
            if position:
                yield ","
            yield from _parts(each, depth + 1)
        yield "]"
    else:
        yield json.dumps(value, ensure_ascii=False)


def masked(value: Any, path: Sequence[str], depth: int = 0) -> Any:
    """The value with ``***`` at a path. A step ``*`` is every member; arrays are walked through without a step of their own.

    A value that ends before the path does is masked, too. ValueError when it is nested too deeply."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it has more than {MAX_DEPTH} levels")
    if not path:
        return None if value is None else MASK
    if isinstance(value, list):
        return [masked(each, path, depth + 1) for each in value]
    if not isinstance(value, dict):
        return None if value is None else MASK  # where an object was expected: rather too much than too little
    return {name: each if (rest := behind(path, name)) is None else masked(each, rest, depth + 1) for name, each in value.items()}


def opaque_masked(value: Any, depth: int = 0) -> Any:
    """The value with ``***`` in members whose names begin with ``#``: no path says what fields are that a schema does not
    know. ValueError when it is nested too deeply."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it has more than {MAX_DEPTH} levels")
    if isinstance(value, list):
        return [opaque_masked(each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: MASK if name.startswith("#") else opaque_masked(each, depth + 1) for name, each in value.items()}


def behind(path: Sequence[str], name: str) -> Sequence[str] | None:
    """What of a path lies inside of a member; None when the path does not lead there. A name with dots takes several steps."""
    if path[0] in ("*", name):
        return path[1:]
    steps = name.count(".") + 1
    return path[steps:] if steps > 1 and ".".join(path[:steps]) == name else None
