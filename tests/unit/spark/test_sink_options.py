"""The sink's options: read, or refused with what would be right."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ConfigError
from tidelog.records.compression import Codec
from tidelog.spark.sink_options import DEFAULT_STAGING_TOPIC, parse_sink_options

SERVERS = {"kafka.bootstrap.servers": "a:1"}


def test_options_are_read_without_regard_to_case_and_sparks_own_pass() -> None:
    found = parse_sink_options(
        SERVERS | {"TOPIC": "t", "checkpointLocation": "x", "kafka.Compression.Type": "lz4", "inlinebytes": "0"}, streaming=True
    )
    assert (found.topic, found.app, found.inline_bytes, found.staging_topic) == ("t", None, 0, DEFAULT_STAGING_TOPIC)
    assert found.producer.codec == Codec.LZ4
    assert found.client.bootstrap == (("a", 1),)


def test_a_batch_has_a_name_and_a_number_or_neither() -> None:
    found = parse_sink_options(SERVERS | {"txnAppId": "a", "txnVersion": "3", "txnMetadata": "m"}, streaming=False)
    assert (found.app, found.version, found.metadata) == ("a", 3, "m")
    with pytest.raises(ConfigError, match="belong together"):
        parse_sink_options(SERVERS | {"txnAppId": "a"}, streaming=False)
    with pytest.raises(ConfigError, match="a stream numbers its batches itself"):
        parse_sink_options(SERVERS | {"txnAppId": "a", "txnVersion": "3"}, streaming=True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"topik": "t"}, "Did you mean topic"),
        ({"topic": "a b"}, "1 to 249 of the characters"),
        ({"path": "t"}, "named by the option topic"),
        ({"firstBatch": "x"}, "a whole number from 0"),
        ({"kafka.group.id": "g"}, "group.id is not used"),
        ({"kafka.acks": "0"}, "acks=all"),
        ({"kafka.bach.size": "1"}, "bach.size"),
    ],
)
def test_what_cannot_be_is_told(options: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_sink_options(SERVERS | options, streaming=True)
