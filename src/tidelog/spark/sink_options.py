"""The user's settings for the sink, as one frozen value. As strict as the source's options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.client.producer_settings import ProducerSettings, parse_producer_settings
from tidelog.client.settings import ClientSettings, parse_settings, unknown
from tidelog.model.errors import ConfigError

NAMES = ("topic", "txnAppId", "txnVersion", "txnMetadata", "firstBatch", "stagingTopic", "inlineBytes")
FROM_SPARK = ("checkpointlocation", "queryname", "outputmode", "path")
"""Spark's own options, which reach every sink."""
DEFAULT_STAGING_TOPIC = "__tidelog_sink"
_KNOWN = {name.lower(): name for name in NAMES}
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """``topic`` None: the rows have a column for it. ``app``: the name under which batches are numbered; None: the query's id,
    or none."""

    topic: str | None
    app: str | None
    version: int | None
    metadata: str
    first_batch: int
    staging_topic: str
    inline_bytes: int
    producer: ProducerSettings
    client: ClientSettings


def parse_sink_options(given: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    """The options, checked. ConfigError says which is wrong and what would be right."""
    options: dict[str, str] = {}
    kafka: dict[str, str] = {}
    for name, text in given.items():
        lower = name.lower()
        if lower == "path":
            raise ConfigError("The topic is named by the option topic; start() and save() take no path.")
        if lower.startswith("kafka."):
            kafka[lower.removeprefix("kafka.")] = text
        elif lower in _KNOWN:
            options[_KNOWN[lower]] = text
        elif lower not in FROM_SPARK:
            raise unknown(name, dict.fromkeys(NAMES), "The option")
    if streaming and "txnVersion" in options:
        raise ConfigError("txnVersion is for df.write; a stream numbers its batches itself.")
    if not streaming and ("txnAppId" in options) != ("txnVersion" in options):
        raise ConfigError(
            "txnAppId and txnVersion belong together: who writes, and the number of what is written. Set both or none."
        )
    producer, client = parse_producer_settings(kafka)
    return SinkOptions(
        topic=_topic(options, "topic"),
        app=options.get("txnAppId"),
        version=_number(options, "txnVersion"),
        metadata=options.get("txnMetadata", ""),
        first_batch=_number(options, "firstBatch") or 0,
        staging_topic=_topic(options, "stagingTopic") or DEFAULT_STAGING_TOPIC,
        inline_bytes=1 << 20 if "inlineBytes" not in options else _number(options, "inlineBytes") or 0,
        producer=producer,
        client=parse_settings(client, "kafka."),
    )


def _topic(options: Mapping[str, str], name: str) -> str | None:
    found = options.get(name)
    if found is not None and not _TOPIC.fullmatch(found):
        raise ConfigError(f"{name} is {found!r}: a topic's name has 1 to 249 of the characters a-z A-Z 0-9 . _ -")
    return found


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) >= 1 << 63:
        raise ConfigError(f"{name} is {text!r}, and must be a whole number from 0 on.")
    return int(text)
