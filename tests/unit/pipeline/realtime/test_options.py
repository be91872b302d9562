"""A pipeline's words in those of Java's Kafka clients."""

from __future__ import annotations

import pytest

from tests.unit.pipeline.samples import model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.realtime.options import java_settings, sink_options, source_options

RELAY = """\
pipeline: relay
engine: jvm
kafka: {bootstrap.servers: "b:9092", fetch.max.bytes: 1048576}
sources: {rides: {topics: [one, two], start: "1970-01-01T00:00:01Z", on_data_loss: log}}
sinks: {out: {type: topic, from: rides, topic: out}}
"""


def test_a_source_reads_what_was_committed_from_where_it_is_told() -> None:
    model = model_of(RELAY)
    assert source_options(model, model.sources[0]) == {
        "kafka.bootstrap.servers": "b:9092",
        "kafka.fetch.max.bytes": "1048576",
        "kafka.isolation.level": "read_committed",
        "subscribe": "one,two",
        "startingTimestamp": "1000",
        "startingOffsetsByTimestampStrategy": "latest",
        "failOnDataLoss": "false",
        "includeHeaders": "false",
    }
    earliest = model_of(RELAY.replace('start: "1970-01-01T00:00:01Z", ', "").replace("topics: [one, two]", 'pattern: "r.*"'))
    options = source_options(earliest, earliest.sources[0])
    assert (options["startingOffsets"], options["subscribePattern"]) == ("earliest", "r.*")


def test_a_sink_has_no_settings_of_a_reader_and_waits_for_nothing() -> None:
    assert sink_options(model_of(RELAY), "out") == {"kafka.bootstrap.servers": "b:9092", "kafka.linger.ms": "0", "topic": "out"}


def test_a_login_is_said_as_java_wants_it() -> None:
    said = {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "etl", "sasl.password": 'a"b\\'}
    login = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="etl" password="a\\"b\\\\";'
    assert java_settings(said) == {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": login}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ssl.ca.location": "ca.pem"}, "say ssl.truststore.type: PEM and ssl.truststore.location"),
        ({"sasl.username": "etl", "sasl.mechanism": "GSSAPI"}, "say sasl.jaas.config"),
        ({"sasl.kerberos.keytab": "/k", "sasl.mechanism": "GSSAPI"}, "say sasl.jaas.config"),
    ],
)
def test_what_java_has_in_another_form_is_told_with_that_form(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        java_settings(settings)
