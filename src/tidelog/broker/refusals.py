"""The answer that refuses a whole request with one error, made from the schema of its response.

A response says an error either once, in an ``error_code`` of its own, or once for each topic, partition, resource or group that
the request names. Where it has a place of its own in the request's version, that is used; else the entries of the request are
repeated with the error in each. Few APIs are not regular; their row of the table has a function.

``first_error`` is the way back: what a response says as a whole, or of the first thing that was asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from tidelog.broker.answers import Answer
from tidelog.broker.request import Context, RequestContext
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol import registry
from tidelog.protocol.structure import Message, Structure

Refusal: TypeAlias = Callable[[RequestContext[Any], Any, KafkaError], Answer]
"""(context, request, error) -> the answer that says so."""

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
"""Fields that say which thing an entry is about; the answer repeats them."""
_SAMPLE: Mapping[type, Any] = {int: 1, str: "?", bytes: b"?"}


F = TypeVar("F", bound=Callable[..., Any])


def _remembered(function: F) -> F:
    """``functools.cache``, typed: mypy takes a class whose instances cannot be hashed for one that cannot be hashed itself."""
    return cache(function)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a message of a version says an error: in ``code``, or in each entry of ``entries``."""

    cls: type[Structure]
    code: str | None
    message: str | None
    entries: str
    entry: _Place | None


def regular(**nothing: Any) -> Refusal:
    """A refusal by the schema. ``nothing``: fields of the answer for which another value than the schema's default says that
    there is nothing."""

    def refuse(ctx: Context, request: Any, error: KafkaError) -> Message:
        place = _place(registry.response_class(ctx.api_key), ctx.api_version)
        assert place is not None, f"API {ctx.api_key} version {ctx.api_version} cannot say an error"
        refused = _refused(place, request, error, nothing)
        assert isinstance(refused, Message)
        return refused

    return refuse


REGULAR = regular()


def each_and_whole(ctx: Context, request: Any, error: KafkaError) -> Message:
    """The error once for the whole and, with its message, in each entry: for responses whose message is in the entries only."""
    cls = registry.response_class(ctx.api_key)
    entries = _entries(cls, ctx.api_version)
    assert entries is not None
    answer = _refused(entries, request, error, {})
    assert isinstance(answer, Message)
    if _carries(cls, _CODES[0], ctx.api_version):
        setattr(answer, _CODES[0], error.code)
    return answer


def first_error(response: Structure) -> ErrorCode:
    """The error that a response says as a whole, else the one of its first entry; NONE when there is none."""
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
    """What a request, or a part of it, names: the elements of its lists."""
    for name in type(asked).__slots__:  # type: ignore[attr-defined]
        value = getattr(asked, name)
        if isinstance(value, list):
            yield from value


def _name(answer: Structure, asked: object) -> None:
    """Say in ``answer`` which thing it is about: by the fields that both have, else by the first field of its own."""
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
    """The fields of an answer besides its error."""
    return [name for name in answer.__slots__ if name not in (*_CODES, _MESSAGE)]


def _converted(answer: Structure, name: str, value: Any) -> Any:
    """``value``, its structures as those of the answer."""
    cls = _elements(type(answer)).get(name)
    if cls is None:
        return "" if value is None and _types(type(answer))[name] is str else value
    return [cls(**{field: getattr(each, field) for field in cls.__slots__}) for each in value]


# -- the schema --------------------------------------------------------------------------------------------------------------


@_remembered
def _place(cls: type[Structure], version: int) -> _Place | None:
    """Where a version says an error; None when it cannot."""
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
    """The lists whose elements can say an error."""
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
    """Whether a version has this field: another value makes other bytes."""
    element = _elements(cls).get(name)
    kinds = (_types(cls)[name], *get_args(_types(cls)[name]))
    sample = [element()] if element is not None else next(_SAMPLE[kind] for kind in kinds if kind in _SAMPLE)
    return _bytes(cls, version) != (with_it := _bytes(cls, version, **{name: sample})) and with_it is not None


def _bytes(cls: type[Structure], version: int, **values: Any) -> bytes | None:
    """A message that says nothing but ``values``; None when the version has no place for them."""
    out = bytearray()
    try:
        cls(**values).encode_into(out, version)
    except ValueError:
        return None
    return bytes(out)
