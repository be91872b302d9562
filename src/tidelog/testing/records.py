"""Records as a test writes and reads them: one line, no client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tidelog.records.batch import BatchHeader
from tidelog.records.builder import RecordData
from tidelog.records.record import iter_records

Text = str | bytes | None


@dataclass(frozen=True, slots=True)
class Message:
    """One record. Keys and values are bytes; ``text`` and ``key_text`` read them as UTF-8."""

    value: bytes | None
    key: bytes | None = None
    headers: Mapping[str, bytes | None] = field(default_factory=dict)
    partition: int = 0
    offset: int = -1
    timestamp_ms: int = -1

    @property
    def text(self) -> str | None:
        return None if self.value is None else self.value.decode()

    @property
    def key_text(self) -> str | None:
        return None if self.key is None else self.key.decode()


def raw(text: Text) -> bytes | None:
    """Text as UTF-8, bytes as they are. TypeError for anything else."""
    if text is not None and not isinstance(text, str | bytes):
        raise TypeError(f"keys and values are str, bytes or None, not {type(text).__name__}: {text!r}")
    return text.encode() if isinstance(text, str) else text


def to_records(values: Iterable[Text | tuple[Text, Text] | Message], now_ms: int) -> list[RecordData]:
    """Values, (key, value) pairs or Messages."""
    records = []
    for value in values:
        if isinstance(value, Message):
            stamp = value.timestamp_ms if value.timestamp_ms >= 0 else now_ms
            records.append(RecordData(value.key, value.value, stamp, tuple(value.headers.items())))
        elif isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(f"a tuple is (key, value), and {value!r} has {len(value)} parts; a Message has headers as well")
            records.append(RecordData(raw(value[0]), raw(value[1]), now_ms))
        else:
            records.append(RecordData(None, raw(value), now_ms))
    return records


def of_batch(data: bytes, header: BatchHeader, partition: int) -> Iterator[Message]:
    """The messages of the batch at ``header``."""
    for record in iter_records(data, header):
        headers = {key if isinstance(key, str) else key.decode(): value for key, value in record.headers}
        yield Message(record.value, record.key, headers, partition, record.offset, record.timestamp)
