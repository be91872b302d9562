"""Options of Spark's Kafka connector: a pipeline's keys in the terms of Java's clients. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import PipelineModel, Source

_READERS = ("fetch.", "isolation.", "check.", "max.partition.")
_OTHERS = {
    "ssl.ca.location": "ssl.truststore.type: PEM and ssl.truststore.location",
    "ssl.certificate.location": "ssl.keystore.type: PEM and ssl.keystore.location",
    "ssl.key.location": "ssl.keystore.type: PEM and ssl.keystore.location",
    "enable.ssl.certificate.verification": "ssl.truststore.location",
    "sasl.kerberos.keytab": "sasl.jaas.config",
    "sasl.kerberos.principal": "sasl.jaas.config",
}
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_settings(kafka: Mapping[str, str]) -> dict[str, str]:
    """Client settings under Java's names. ConfigError for a setting that has another form in Java, with that form."""
    found = dict(kafka)
    for name, instead in _OTHERS.items():
        if name in found:
            raise ConfigError(f"kafka.{name} is not a setting of Java's client, which engine: jvm uses: say {instead}.")
    if "sasl.mechanisms" in found:
        found["sasl.mechanism"] = found.pop("sasl.mechanisms")
    user, password = found.pop("sasl.username", None), found.pop("sasl.password", None)
    if user is not None:
        mechanism = found.get("sasl.mechanism", "")
        if mechanism not in _LOGIN:
            raise ConfigError(
                f"kafka.sasl.username goes with sasl.mechanism {', '.join(_LOGIN)}; for {mechanism!r} say sasl.jaas.config."
            )
        found["sasl.jaas.config"] = f"{_LOGIN[mechanism]} required username={_quoted(user)} password={_quoted(password or '')};"
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def source_options(model: PipelineModel, source: Source) -> dict[str, str]:
    """For ``readStream.format("kafka")``. Aborted records are not read unless the pipeline asks for them."""
    settings = {"isolation.level": "read_committed"} | java_settings(dict(model.kafka))
    found = {f"kafka.{name}": value for name, value in settings.items()}
    found |= {"subscribe": ",".join(source.topics)} if source.topics else {"subscribePattern": source.pattern}
    if source.start.isdecimal():
        found |= {"startingTimestamp": source.start, "startingOffsetsByTimestampStrategy": "latest"}
    else:
        found["startingOffsets"] = source.start
    return found | {
        "failOnDataLoss": str(source.fail_on_data_loss).lower(),
        "includeHeaders": str(source.headers).lower(),
    }


def sink_options(model: PipelineModel, topic: str) -> dict[str, str]:
    """For ``writeStream.format("kafka")``, without a reader's settings. A record is sent at once unless the pipeline says
    otherwise."""
    settings = {"linger.ms": "0"} | java_settings(dict(model.kafka))
    kept = {f"kafka.{name}": value for name, value in settings.items() if not name.startswith(_READERS)}
    return kept | {"topic": topic}
