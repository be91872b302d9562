"""Builds the response that refuses a whole request with one error, from the schema of the response.

A response has an error either once, in a top-level ``error_code``, or once for each topic, partition, resource or group that the
request names. If the version has a top-level error, that is used; otherwise the request's entries are repeated with the error in
each. The few irregular APIs have a function in their row of the table.

``first_error`` does the reverse: the top-level error of a response, or that of its first entry.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from tidelog.broker.answer_types import Answer
from tidelog.broker.request import Context, RequestContext
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol import registry
from tidelog.protocol.structure import Message, Structure

Refusal: TypeAlias = Callable[[RequestContext[Any], Any, KafkaError], Answer]
"""(context, request, error) -> the response with this error."""

_CODES = ("error_code", "partition_error_code")
_MESSAGE = "error_message"
_NAMING = frozenset(
    {
        "entity",
        "group_id",
        "name",
        "partition",
        "partition_index",
        "producer_id",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
        "topic_name",
        "transactional_id",
    }
)
"""Fields that identify an entry; the answer repeats them."""
_SAMPLE: Mapping[type, Any] = {int: 1, str: "?", bytes: b"?"}


F = TypeVar("F", bound=Callable[..., Any])


def _remembered(function: F) -> F:
    """``functools.cache``, typed: mypy treats a class with unhashable instances as unhashable itself."""
    return cache(function)  # type: ignore[return-value]


class _Place(NamedTuple):
    """Where a message of a version has an error: in ``code``, or in each entry of ``entries``."""

    cls: type[Structure]
    code: str | None
    message: str | None
    entries: str
    entry: _Place | None


def regular(**nothing: Any) -> Refusal:
    """A refusal by the schema. ``nothing``: values for fields whose "empty" is not the schema's default."""

    def refuse(ctx: Context, request: Any, error: KafkaError) -> Message:
        place = _place(registry.response_class(ctx.api_key), ctx.api_version)
        assert place is not None, f"API {ctx.api_key} version {ctx.api_version} cannot say an error"
        refused = _refused(place, request, error, nothing)
        assert isinstance(refused, Message)
        return refused

    return refuse


REGULAR = regular()


def each_and_whole(ctx: Context, request: Any, error: KafkaError) -> Message:
    """The error and its message at the top level, as far as the version has them there, and in each entry."""
    cls = registry.response_class(ctx.api_key)
    entries = _entries(cls, ctx.api_version)
    assert entries is not None
    answer = _refused(entries, request, error, {})
    assert isinstance(answer, Message)
    if _carries(cls, _CODES[0], ctx.api_version):
        setattr(answer, _CODES[0], error.code)
    if _MESSAGE in cls.__slots__ and _carries(cls, _MESSAGE, ctx.api_version):
        setattr(answer, _MESSAGE, error.detail or None)
    return answer


def first_error(response: Structure) -> ErrorCode:
    """The top-level error of a response, otherwise that of its first entry; NONE if there is none."""
    for name in _CODES:
        code = getattr(response, name, ErrorCode.NONE)
        if code:
            return ErrorCode(code)
    for name in _speaking_lists(type(response)):
        for entry in (getattr(response, name) or ())[:1]:
            code = first_error(entry)
            if code:
                return code
    return ErrorCode.NONE


def _refused(place: _Place, asked: object, error: KafkaError, nothing: Mapping[str, Any]) -> Structure:
    answer = place.cls()
    _name(answer, asked)
    if place.code is not None:
        for name, value in nothing.items():
            if name in place.cls.__slots__:
                setattr(answer, name, value)
        setattr(answer, place.code, error.code)
        if place.message is not None:
            setattr(answer, place.message, error.detail or None)
    else:
        assert place.entry is not None
        setattr(answer, place.entries, [_refused(place.entry, each, error, nothing) for each in _listed(asked)])
    return answer


def _listed(asked: object) -> Iterator[object]:
    """The elements of the lists of a request, or of a part of it."""
    for name in type(asked).__slots__:  # type: ignore[attr-defined]
        value = getattr(asked, name)
        if isinstance(value, list):
            yield from value


def _name(answer: Structure, asked: object) -> None:
    """Identify the entry in ``answer``: by the fields that both have, otherwise by its first field that is not an error."""
    if not isinstance(asked, Structure):
        setattr(answer, _own(answer)[0], asked)
        return
    shared = _NAMING.intersection(asked.__slots__).intersection(answer.__slots__)
    for name in shared:
        setattr(answer, name, _converted(answer, name, getattr(asked, name)))
    if not shared and (own := _own(answer)) and not isinstance(asked, Message):
        first = getattr(asked, asked.__slots__[0])
        if type(first) is type(getattr(answer, own[0])):
            setattr(answer, own[0], first)


def _own(answer: Structure) -> list[str]:
    """The fields of an answer other than its error."""
    return [name for name in answer.__slots__ if name not in (*_CODES, _MESSAGE)]


def _converted(answer: Structure, name: str, value: Any) -> Any:
    """``value``, with its structures converted to those of the answer."""
    cls = _elements(type(answer)).get(name)
    if cls is None:
        return "" if value is None and _types(type(answer))[name] is str else value
    return [cls(**{field: getattr(each, field) for field in cls.__slots__}) for each in value]


# -- the schema --------------------------------------------------------------------------------------------------------------


@_remembered
def _place(cls: type[Structure], version: int) -> _Place | None:
    """Where a version has an error; None if nowhere."""
    for code in _CODES:
        if code in cls.__slots__ and _carries(cls, code, version):
            message = _MESSAGE if _MESSAGE in cls.__slots__ and _carries(cls, _MESSAGE, version) else None
            return _Place(cls, code, message, "", None)
    return _entries(cls, version)


@_remembered
def _entries(cls: type[Structure], version: int) -> _Place | None:
    for name, element in _elements(cls).items():
        entry = _place(element, version)
        if entry is not None and _carries(cls, name, version):
            return _Place(cls, None, None, name, entry)
    return None


@_remembered
def _speaking_lists(cls: type[Structure]) -> tuple[str, ...]:
    """The lists whose elements can hold an error."""
    return tuple(
        name
        for name, element in _elements(cls).items()
        if any(code in element.__slots__ for code in _CODES) or _speaking_lists(element)
    )


@_remembered
def _types(cls: type[Structure]) -> dict[str, Any]:
    """The type of each field, from the generated constructor."""
    return get_type_hints(cls.__init__, vars(sys.modules[cls.__module__]))


@_remembered
def _elements(cls: type[Structure]) -> dict[str, type[Structure]]:
    """The fields that are lists of structures, with the class of their elements."""
    found = {}
    for name in cls.__slots__:
        for each in (_types(cls)[name], *get_args(_types(cls)[name])):
            if get_origin(each) is list and issubclass(element := get_args(each)[0], Structure):
                found[name] = element
    return found


@_remembered
def _carries(cls: type[Structure], name: str, version: int) -> bool:
    """Whether a version has this field: changing its value changes the encoding."""
    element = _elements(cls).get(name)
    kinds = (_types(cls)[name], *get_args(_types(cls)[name]))
    sample = [element()] if element is not None else next(_SAMPLE[kind] for kind in kinds if kind in _SAMPLE)
    return _bytes(cls, version) != (with_it := _bytes(cls, version, **{name: sample})) and with_it is not None


def _bytes(cls: type[Structure], version: int, **values: Any) -> bytes | None:
    """A message with only ``values`` set; None if the version cannot encode them."""
    out = bytearray()
    try:
        cls(**values).encode_into(out, version)
    except ValueError:
        return None
    return bytes(out)
