"""Producer settings under Java's names: the supported ones, and why the others are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.model.errors import ConfigError
from tidelog.records.compression import Codec, compress

ACKS = ("all", "-1")
REFUSED: dict[str, str] = {
    "transactional.id": "is not set here: it is made of the query's id, or of the option txnAppId",
    "linger.ms": "is not used: a batch is closed when it is full, and at the end of its task",
    "key.serializer": "is not set here: keys are bytes; encode them with DataFrame functions",
    "value.serializer": "is not set here: values are bytes; encode them with DataFrame functions",
    "partitioner.class": "names a Java class, and there is no Java in this client: give a column partition instead",
    "max.in.flight.requests.per.connection": "is not used: batches of a partition are sent one after another",
    "retries": "is not used: what passes is tried again for delivery.timeout.ms",
}
_NUMBERS = {
    "batch.size": (1, 1 << 30, 256 << 10),
    "buffer.memory": (1 << 16, 1 << 40, 32 << 20),
    "max.request.size": (1 << 10, 1 << 30, 1 << 20),
    "transaction.timeout.ms": (1000, 0x7FFFFFFF, 600_000),
    "delivery.timeout.ms": (1, 0x7FFFFFFF, 120_000),
    "compression.level": (-(1 << 17), 1 << 10, None),
}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Batching and sending; sizes in bytes, times in ms. ``compression_level`` None: the codec's default."""

    codec: Codec
    compression_level: int | None
    batch_size: int
    buffer_memory: int
    max_request_size: int
    transaction_timeout_ms: int
    delivery_timeout_ms: int


def parse_producer_settings(given: Mapping[str, str]) -> tuple[ProducerSettings, dict[str, str]]:
    """The producer's settings, and the remaining ones. ConfigError says what is wrong and what to set instead."""
    numbers: dict[str, int | None] = {name: default for name, (_, _, default) in _NUMBERS.items()}
    codec = Codec.NONE
    others: dict[str, str] = {}
    for name, text in given.items():
        if name in REFUSED:
            raise ConfigError(f"{name} {REFUSED[name]}.")
        if name in _NUMBERS:
            numbers[name] = _number(name, text)
        elif name == "compression.type":
            if text.upper() not in Codec.__members__:
                raise ConfigError(f"compression.type is {text!r}, and must be one of none, gzip, snappy, lz4, zstd.")
            codec = Codec[text.upper()]
        elif name == "acks" and text not in ACKS:
            raise ConfigError(f"acks is {text!r}: transactions are written with acks=all.")
        elif name == "enable.idempotence" and text.lower() != "true":
            raise ConfigError(f"enable.idempotence is {text!r}: transactions need true.")
        elif name not in ("acks", "enable.idempotence"):
            others[name] = text
    _check_level(codec, numbers["compression.level"])
    return (
        ProducerSettings(
            codec=codec,
            compression_level=numbers["compression.level"],
            batch_size=numbers["batch.size"] or 0,
            buffer_memory=numbers["buffer.memory"] or 0,
            max_request_size=numbers["max.request.size"] or 0,
            transaction_timeout_ms=numbers["transaction.timeout.ms"] or 0,
            delivery_timeout_ms=numbers["delivery.timeout.ms"] or 0,
        ),
        others,
    )


def _check_level(codec: Codec, level: int | None) -> None:
    if level is None:
        return
    if codec in (Codec.NONE, Codec.SNAPPY):
        raise ConfigError(f"compression.level is {level}, and compression.type {codec.name.lower()} has no levels.")
    try:
        compress(codec, b"a trial", level)
    except Exception as error:  # each compression library raises its own errors
        raise ConfigError(f"compression.level is {level}, and {codec.name.lower()} does not take that: {error}.") from error


def _number(name: str, text: str) -> int:
    low, high, _ = _NUMBERS[name]
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise ConfigError(f"{name} is {text!r}, and must be a number from {low} to {high}.")
    return value
