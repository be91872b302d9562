"""The formatters of the console consumer, under Kafka's class names and properties: records to lines.

A formatter uses ``Consumed`` and no client. Classes are given by their full name or its last part.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tidelog.cli import client_settings
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.consumed_record import Consumed
from tidelog.cli.tools.offsets_topic_formatters import (
    group_metadata_formatter,
    offsets_formatter,
    share_group_formatter,
    share_group_state_formatter,
)
from tidelog.model.ids import NO_EPOCH, NO_TIMESTAMP

Deserializer = Callable[[bytes], bytes]
DEFAULT_FORMATTER = "DefaultMessageFormatter"
DEFAULT_PROPERTIES = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.delivery": "false",
    "print.epoch": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
    "key.deserializer": "",
    "value.deserializer": "",
    "headers.deserializer": "",
}


class MessageFormatter(Protocol):
    """Formats one record as bytes; ValueError when it is malformed."""

    def __call__(self, record: Consumed) -> bytes: ...


@dataclass(frozen=True, slots=True)
class DefaultFormatter:
    """The columns that the properties enable, in Kafka's order, joined by ``key.separator``."""

    columns: frozenset[str]
    separator: bytes
    line_separator: bytes
    headers_separator: bytes
    null: bytes
    of_key: Deserializer
    of_value: Deserializer
    of_header: Deserializer

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> DefaultFormatter:
        """CommandFailed for an unknown property or deserializer."""
        unknown = sorted(name for name in properties if name not in DEFAULT_PROPERTIES and ".deserializer." not in name)
        if unknown:
            known = ", ".join(DEFAULT_PROPERTIES)
            raise CommandFailed(f"The formatter has no property {', '.join(unknown)}. Those it has: {known}.")
        full = DEFAULT_PROPERTIES | dict(properties)
        return cls(
            columns=frozenset(
                name.removeprefix("print.")
                for name, value in full.items()
                if name.startswith("print.") and value.strip().lower() == "true"
            ),
            separator=full["key.separator"].encode(),
            line_separator=full["line.separator"].encode(),
            headers_separator=full["headers.separator"].encode(),
            null=full["null.literal"].encode(),
            of_key=deserializer(full["key.deserializer"]),
            of_value=deserializer(full["value.deserializer"]),
            of_header=deserializer(full["headers.deserializer"]),
        )

    def __call__(self, record: Consumed) -> bytes:
        parts = []
        if "timestamp" in self.columns:
            known = record.timestamp_ms != NO_TIMESTAMP
            parts.append(b"%s:%d" % (record.timestamp_kind.encode(), record.timestamp_ms) if known else b"NO_TIMESTAMP")
        if "partition" in self.columns:
            parts.append(b"Partition:%d" % record.partition)
        if "offset" in self.columns:
            parts.append(b"Offset:%d" % record.offset)
        if "delivery" in self.columns:
            count = record.delivery_count
            parts.append(b"Delivery:NOT_PRESENT" if count is None else b"Delivery:%d" % count)
        if "epoch" in self.columns:
            known = record.leader_epoch != NO_EPOCH
            parts.append(b"Epoch:%d" % record.leader_epoch if known else b"Epoch:NOT_PRESENT")
        if "headers" in self.columns:
            parts.append(self._headers(record))
        if "key" in self.columns:
            parts.append(self.null if record.key is None else self.of_key(record.key))
        if "value" in self.columns:
            parts.append(self.null if record.value is None else self.of_value(record.value))
        return self.separator.join(parts) + self.line_separator

    def _headers(self, record: Consumed) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self.headers_separator.join(
            key.encode() + b":" + (self.null if value is None else self.of_header(value)) for key, value in record.headers
        )


def logging_formatter(record: Consumed) -> bytes:
    """The whole record in one line, in the format of Kafka's logging formatter."""
    key, value = (b"null" if text is None else text for text in (record.key, record.value))
    stamp = b"%s:%d, " % (record.timestamp_kind.encode(), record.timestamp_ms) if record.timestamp_ms != NO_TIMESTAMP else b""
    return stamp + b"key:" + key + b", value:" + value + b"\n"


def no_op_formatter(record: Consumed) -> bytes:
    """Prints nothing, for measurements."""
    return b""


def formatter(name: str, properties: Mapping[str, str]) -> MessageFormatter:
    """The formatter with that class name, in full or its last part."""
    last = name.rpartition(".")[2]
    if last == DEFAULT_FORMATTER:
        return DefaultFormatter.from_properties(properties)
    others: dict[str, MessageFormatter] = {
        "LoggingMessageFormatter": logging_formatter,
        "NoOpMessageFormatter": no_op_formatter,
        "OffsetsMessageFormatter": offsets_formatter,
        "GroupMetadataMessageFormatter": group_metadata_formatter,
        "ShareGroupMessageFormatter": share_group_formatter,
        "ShareGroupStateMessageFormatter": share_group_state_formatter,
    }
    if last not in others:
        known = [DEFAULT_FORMATTER, *others]
        raise CommandFailed(f"There is no formatter {name}. Those there are: {', '.join(known)}.")
    return others[last]


def chosen_formatter(flags: Mapping[str, Any]) -> MessageFormatter:
    """The formatter that the flags of a console tool name, with its properties."""
    properties = client_settings.gather([flags["formatter_config"]], [*flags["properties"], *flags["formatter_property"]])
    for name in ("key", "value"):
        if flags[f"{name}_deserializer"]:
            properties[f"{name}.deserializer"] = flags[f"{name}_deserializer"]
    return formatter(flags["formatter_class"], properties)


def deserializer(name: str) -> Deserializer:
    """Bytes to text, by the class name of Kafka's deserializer; with an empty name bytes stay unchanged."""
    last = name.strip().rpartition(".")[2]
    if last not in DESERIALIZERS:
        known = ", ".join(filter(None, DESERIALIZERS))
        raise CommandFailed(f"There is no deserializer {name}. Those there are: {known}.")
    return DESERIALIZERS[last]


def _fixed(pattern: str, kind: str) -> Deserializer:
    layout = struct.Struct(pattern)

    def deserialize(data: bytes) -> bytes:
        if len(data) != layout.size:
            raise ValueError(f"Size of data received by {kind}Deserializer is not {layout.size}: it is {len(data)} bytes")
        return str(layout.unpack(data)[0]).encode()

    return deserialize


def _boolean(data: bytes) -> bytes:
    if data not in {b"\0", b"\1"}:
        raise ValueError(f"A boolean is one byte, 0 or 1; this is {data[:20]!r}")
    return b"true" if data == b"\1" else b"false"


def _uuid(data: bytes) -> bytes:
    return str(uuid.UUID(data.decode())).encode()


def _as_is(data: bytes) -> bytes:
    return data


DESERIALIZERS: dict[str, Deserializer] = {
    "": _as_is,
    "StringDeserializer": _as_is,
    "ByteArrayDeserializer": _as_is,
    "BytesDeserializer": _as_is,
    "ShortDeserializer": _fixed(">h", "Short"),
    "IntegerDeserializer": _fixed(">i", "Integer"),
    "LongDeserializer": _fixed(">q", "Long"),
    "FloatDeserializer": _fixed(">f", "Float"),
    "DoubleDeserializer": _fixed(">d", "Double"),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
    "VoidDeserializer": lambda data: b"null",
}
