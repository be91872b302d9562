"""A producer's settings: used, or refused with the reason."""

from __future__ import annotations

import pytest

from tidelog.client.producer_settings import parse_producer_settings
from tidelog.model.errors import ConfigError
from tidelog.records.compression import Codec


def test_what_is_the_producers_is_read_and_the_rest_is_left() -> None:
    settings, others = parse_producer_settings(
        {"acks": "all", "compression.type": "zstd", "compression.level": "5", "batch.size": "1000", "client.id": "me"}
    )
    assert (settings.codec, settings.compression_level, settings.batch_size) == (Codec.ZSTD, 5, 1000)
    assert others == {"client.id": "me"}
    assert parse_producer_settings({"acks": "-1", "enable.idempotence": "true"})[1] == {}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("acks", "1", "transactions are written with acks=all"),
        ("enable.idempotence", "false", "transactions need true"),
        ("compression.type", "producer", "one of none, gzip, snappy, lz4, zstd"),
        ("compression.level", "3", "none has no levels"),
        ("batch.size", "0", "a number from 1 to"),
        ("batch.size", "x", "a number from 1 to"),
        ("transactional.id", "x", "the option txnAppId"),
        ("linger.ms", "5", "a batch is closed when it is full"),
    ],
)
def test_what_cannot_be_is_told(name: str, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_producer_settings({name: text})


def test_a_level_that_the_codec_does_not_take_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"compression.level is 77, and gzip does not take that"):
        parse_producer_settings({"compression.type": "gzip", "compression.level": "77"})
