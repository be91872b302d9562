"""One payload as text: by the decoder that was asked for, or by the first that fits, with the reasons of those that did not."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidelog.console.payloads import exact_json, framed
from tidelog.console.payloads.framed import Refused, Schema, Schemas
from tidelog.console.payloads.msgpack import NotMessagePack, as_json

MAX_PARSED: Final = 1 << 18
"""Bytes: a longer payload is shown as text, and not parsed."""
WHOLE: Final = sys.maxsize
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_INTEGERS: Final = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload as it is shown. ``cut``: ``text`` is of its first bytes. ``refused``: (decoder, reason) of those tried before."""

    size: int
    decoder: str
    text: str
    cut: bool = False
    masked: bool = False
    schema: Schema | None = None
    refused: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> Mapping[str, Any]:
        """For the browser."""
        return {
            "size": self.size,
            "decoder": self.decoder,
            "text": self.text,
            "cut": self.cut,
            "masked": self.masked,
            "schema": None if self.schema is None else _described(self.schema),
            "refused": [{"decoder": decoder, "reason": reason} for decoder, reason in self.refused],
        }


def _described(schema: Schema) -> Mapping[str, Any]:
    return {"id": schema.schema_id, "guid": schema.guid, "type": schema.kind, "subject": None}


def decode(
    data: bytes | memoryview, wanted: str, limit: int, schemas: Schemas | None = None, header: bytes | None = None
) -> Payload:
    """``wanted``: auto or the name of a decoder. ``limit``: bytes that are shown at most. ``schemas``: for payloads that begin
    with the id of one. ``header``: the value of the header that says the schema instead, see ``framed``.

    A decoder that was asked for and does not fit gives hexadecimal, with its reason."""
    raw = bytes(data)
    refused: list[tuple[str, str]] = []
    if wanted in BY_SCHEMA or (wanted == "auto" and schemas is not None):
        try:
            name, text, schema = _by_schema(raw, schemas, header, wanted)
            return Payload(len(raw), name, text[:limit], len(text) > limit, schema=schema)
        except _NotBySchema as problem:
            refused.append((problem.decoder, str(problem)))
    for name in AUTOMATIC if wanted == "auto" else () if wanted in BY_SCHEMA else (wanted,):
        try:
            text, cut = DECODERS[name](raw, limit)
        except Refused as problem:
            refused.append((name, str(problem)))
        else:
            return Payload(len(raw), name, text, cut, refused=tuple(refused))
    text, cut = _hexadecimal(raw, limit)
    return Payload(len(raw), "hex", text, cut, refused=tuple(refused))


def whole_text(data: bytes | memoryview | None, schemas: Schemas | None = None, header: bytes | None = None) -> str | None:
    """What a filter looks at: the JSON of Avro, Protobuf or MessagePack, the text, or hexadecimal; None for null."""
    if data is None:
        return None
    raw = bytes(data)
    if schemas is not None and (raw[:1] == b"\0" or header is not None):
        try:
            return _by_schema(raw, schemas, header)[1]
        except _NotBySchema:
            pass
    for decoder in (_text, _message_pack):
        try:
            return decoder(raw, WHOLE)[0]
        except Refused:
            continue
    return raw.hex()


def masked(
    data: bytes | memoryview,
    paths: Sequence[Sequence[str]],
    limit: int,
    schemas: Schemas | None = None,
    header: bytes | None = None,
) -> Payload:
    """A payload of which some paths may not be seen; whole when ``paths`` has an empty path, or when it is not JSON, Avro,
    Protobuf or MessagePack. Fields that a schema does not know are masked, too."""
    raw = bytes(data)
    for name in ("auto", "json", "msgpack"):
        if not all(paths):
            break
        try:
            if name == "auto":
                name, text, schema = _by_schema(raw, schemas, header)
                value = exact_json.loads(text)
                if schema.kind == framed.PROTOBUF:
                    value = exact_json.opaque_masked(value)
            else:
                value = exact_json.loads(DECODERS[name](raw, WHOLE)[0])
            for path in paths:
                value = exact_json.masked(value, path)
            shown = exact_json.dumps(value)
        except ValueError:
            continue
        return Payload(len(raw), name, shown[:limit], len(shown) > limit, masked=True)
    return Payload(len(raw), "none", "", masked=True)


def masked_text(
    data: bytes | memoryview | None,
    paths: Sequence[Sequence[str]],
    schemas: Schemas | None = None,
    header: bytes | None = None,
) -> str | None:
    """What a filter sees of such a payload: else a filter could find out what is masked."""
    return None if data is None else masked(data, paths, MAX_PARSED, schemas, header).text


# -- decoders ---------------------------------------------------------------------------------------------------------------


class _NotBySchema(Refused):
    """``decoder``: the name of the one that refused."""

    def __init__(self, decoder: str, reason: str) -> None:
        super().__init__(reason)
        self.decoder = decoder


def _by_schema(raw: bytes, schemas: Schemas | None, header: bytes | None, wanted: str = "auto") -> tuple[str, str, Schema]:
    """The decoder of the schema's kind, the JSON text, and the schema. _NotBySchema, also when ``wanted`` is of another kind."""
    decoder = SCHEMA if wanted == "auto" else wanted
    try:
        if schemas is None:
            raise Refused("the console has no schema registry for this cluster")
        if len(raw) > MAX_PARSED:
            raise Refused(f"{len(raw)} bytes: more than {MAX_PARSED} are not parsed")
        schema, body = framed.found(raw, schemas, header)
        if BY_SCHEMA.get(wanted, schema.kind) != schema.kind:
            raise Refused(f"its schema is of the kind {schema.kind}")
        decoder = _NAMES_OF_KINDS[schema.kind]
        return decoder, schema.text_of(body), schema
    except Refused as problem:
        raise _NotBySchema(decoder, str(problem)) from None


def _json(raw: bytes, limit: int) -> tuple[str, bool]:
    if len(raw) > MAX_PARSED:
        raise Refused(f"{len(raw)} bytes: more than {MAX_PARSED} are not parsed")
    if raw.lstrip()[:1] not in tuple(b"%c" % each for each in b'{["-0123456789tfn'):
        raise Refused("it does not begin as JSON does")
    try:
        exact_json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as problem:
        raise Refused(f"the byte at {problem.start} is not UTF-8") from None
    except ValueError as problem:
        raise Refused(str(problem)) from None
    return _shown(raw, limit)


def _text(raw: bytes, limit: int) -> tuple[str, bool]:
    text, cut = _shown(raw, limit)
    control = _CONTROLS.search(text)
    if control is not None:
        raise Refused(f"the character at {control.start()} is the control character {ord(control[0]):#04x}")
    return text, cut


def _shown(raw: bytes, limit: int) -> tuple[str, bool]:
    """The first ``limit`` bytes as text, without half a character at the end."""
    cut = len(raw) > limit
    part = raw[:limit] if cut else raw
    try:
        return part.decode("utf-8"), cut
    except UnicodeDecodeError as problem:
        if cut and problem.reason == "unexpected end of data":
            return part[: problem.start].decode("utf-8"), True
        raise Refused(f"the byte at {problem.start} is not UTF-8") from None


def _message_pack(raw: bytes, limit: int) -> tuple[str, bool]:
    if len(raw) > MAX_PARSED:
        raise Refused(f"{len(raw)} bytes: more than {MAX_PARSED} are not parsed")
    try:
        text = as_json(raw)
    except NotMessagePack as problem:
        raise Refused(str(problem)) from None
    return text[:limit], len(text) > limit


def _integer(raw: bytes, limit: int) -> tuple[str, bool]:
    if len(raw) not in _INTEGERS:
        raise Refused(f"an integer has 1, 2, 4 or 8 bytes, this has {len(raw)}")
    return str(int.from_bytes(raw, "big", signed=True)), False


def _hexadecimal(raw: bytes, limit: int) -> tuple[str, bool]:
    return raw[:limit].hex(), len(raw) > limit


def _base64(raw: bytes, limit: int) -> tuple[str, bool]:
    return base64.b64encode(raw[:limit]).decode(), len(raw) > limit


def _nothing(raw: bytes, limit: int) -> tuple[str, bool]:
    return "", len(raw) > 0


DECODERS: Final[Mapping[str, Callable[[bytes, int], tuple[str, bool]]]] = {
    "json": _json,
    "text": _text,
    "msgpack": _message_pack,
    "int": _integer,
    "hex": _hexadecimal,
    "base64": _base64,
    "none": _nothing,
}
SCHEMA: Final = "schema"
"""Who refuses a payload whose schema is not found."""
BY_SCHEMA: Final[Mapping[str, str]] = {"avro": framed.AVRO, "protobuf": framed.PROTOBUF, "jsonschema": framed.JSON}
_NAMES_OF_KINDS: Final = {kind: name for name, kind in BY_SCHEMA.items()}
NAMES: Final = ("auto", *BY_SCHEMA, *DECODERS)
AUTOMATIC: Final = ("json", "text", "msgpack", "hex")
