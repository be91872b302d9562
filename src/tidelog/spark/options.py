"""The user's settings for the source: the options of Spark's Kafka connector under their names, as one frozen value.

Spark passes options without regard to case, so names are compared in lower case. An unknown option stops the query and the error
names the closest ones: a typing error in ``failOnDataLoss`` must not be found by a loss. Offsets by partition are the connector's
JSON, ``{"topic": {"0": 23, "1": -2}}``, with -2 for earliest and -1 for latest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.client.settings import ClientSettings, parse_settings, unknown
from tidelog.model.errors import ConfigError
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition

EARLIEST, LATEST = "earliest", "latest"
NAMES = (
    "subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp",
    "startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "includeHeaders",
    "kafkaConsumer.pollTimeoutMs", "maxBatchBytes",
)  # fmt: skip
BATCH_ONLY = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
NOT_HERE = {
    "groupidprefix": "no consumer group is joined, so there is none to name",
    "kafka.group.id": "no consumer group is joined, so there is none to name",
    "fetchoffset.numretries": "say kafka.default.api.timeout.ms, the limit for retries",
    "fetchoffset.retryintervalms": "say kafka.retry.backoff.ms",
    "includetimestamptype": "the column timestampType is always there",
    "path": "topics are named by subscribe, subscribePattern or assign; load() takes no path",
}
_KNOWN = {name.lower(): name for name in NAMES}
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
DEFAULT_MAX_BATCH_BYTES = 128 * 1024 * 1024

PartitionNumbers = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading starts or ends. One of: ``word`` (earliest, latest), ``offsets``, ``timestamps``, or ``timestamp`` (ms) for
    every partition. ``or_latest``: a timestamp later than every record means the end of the partition, not an error."""

    word: str | None = None
    offsets: PartitionNumbers | None = None
    timestamps: PartitionNumbers | None = None
    timestamp: int | None = None
    or_latest: bool = False


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The source's options. Exactly one of ``topics``, ``pattern`` and ``assigned`` is set."""

    topics: tuple[str, ...] | None
    pattern: str | None
    assigned: tuple[TopicPartition, ...] | None
    starting: Bound
    ending: Bound
    max_offsets: int | None
    min_offsets: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    poll_timeout_ms: int
    max_batch_bytes: int
    client: ClientSettings


def parse_options(given: Mapping[str, str], *, streaming: bool | None) -> SourceOptions:
    """The options, checked. ConfigError says which is wrong and what would be right. ``streaming`` None: not known yet."""
    options: dict[str, str] = {}
    client: dict[str, str] = {}
    for name, text in given.items():
        lower = name.lower()
        if lower in NOT_HERE:
            raise ConfigError(f"The option {name} cannot be given: {NOT_HERE[lower]}.")
        if lower.startswith("kafka."):
            client[lower.removeprefix("kafka.")] = text
        elif lower in _KNOWN:
            options[_KNOWN[lower]] = text
        else:
            raise unknown(name, dict.fromkeys(NAMES), "The option")
    if streaming is not None:
        _belongs(options, BATCH_ONLY if streaming else STREAM_ONLY, streaming)
    topics, pattern, assigned = _subscription(options)
    strategy = _choice(options, "startingOffsetsByTimestampStrategy", "error", ("error", "latest"))
    return SourceOptions(
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        starting=_bound(options, "starting", LATEST if streaming else EARLIEST, or_latest=strategy == "latest"),
        ending=_bound(options, "ending", LATEST, or_latest=True),
        max_offsets=_number(options, "maxOffsetsPerTrigger"),
        min_offsets=_number(options, "minOffsetsPerTrigger"),
        max_trigger_delay_ms=_duration(options, "maxTriggerDelay", 15 * 60_000),
        min_partitions=_number(options, "minPartitions"),
        max_records_per_partition=_number(options, "maxRecordsPerPartition"),
        fail_on_data_loss=_choice(options, "failOnDataLoss", "true", ("true", "false")) == "true",
        include_headers=_choice(options, "includeHeaders", "false", ("true", "false")) == "true",
        poll_timeout_ms=_number(options, "kafkaConsumer.pollTimeoutMs") or 120_000,
        max_batch_bytes=_number(options, "maxBatchBytes") or DEFAULT_MAX_BATCH_BYTES,
        client=parse_settings(client, "kafka."),
    )


def _belongs(options: Mapping[str, str], elsewhere: tuple[str, ...], streaming: bool) -> None:
    for name in elsewhere:
        if name in options:
            here, there = ("readStream", "read") if streaming else ("read", "readStream")
            raise ConfigError(f"The option {name} is for spark.{there}, and this is spark.{here}.")


def _subscription(options: Mapping[str, str]) -> tuple[tuple[str, ...] | None, str | None, tuple[TopicPartition, ...] | None]:
    ways = [name for name in ("subscribe", "subscribePattern", "assign") if name in options]
    if len(ways) != 1:
        said = " and ".join(ways) or "none of them"
        raise ConfigError(f"Say which topics to read by one of subscribe, subscribePattern and assign; given is {said}.")
    text = options[ways[0]].strip()
    if ways[0] == "subscribe":
        topics = tuple(sorted({_topic("subscribe", part.strip()) for part in text.split(",")}))
        return topics, None, None
    if ways[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(f"subscribePattern is {text!r}, which is not a regular expression: {error}.") from None
        return None, text, None
    found = _json(options, "assign", '{"topic": [0, 1]}')
    assigned = []
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not all(type(p) is int and p >= 0 for p in partitions):
            raise ConfigError(f'assign has {partitions!r} for topic {topic!r}, and must look like {{"topic": [0, 1]}}.')
        assigned += [TopicPartition(_topic("assign", topic), p) for p in partitions]
    if not assigned:
        raise ConfigError('assign names no partition, and must look like {"topic": [0, 1]}.')
    return None, None, tuple(sorted(set(assigned)))


def _topic(option: str, name: str) -> str:
    if not _TOPIC.fullmatch(name):
        raise ConfigError(f"{option} names the topic {name!r}: a name has 1 to 249 of the characters a-z A-Z 0-9 . _ -")
    return name


def _json(options: Mapping[str, str], option: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(options[option])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"{option} is {options[option]!r}, and must be JSON like {example}.")
    return found


def _by_partition(options: Mapping[str, str], option: str, lowest: int) -> PartitionNumbers:
    example = '{"topic": {"0": 23, "1": 4}}'
    result: PartitionNumbers = {}
    for topic, partitions in _json(options, option, example).items():
        if not isinstance(partitions, dict):
            raise ConfigError(f"{option} has {partitions!r} for topic {topic!r}, and must look like {example}.")
        for partition, number in partitions.items():
            if not partition.isdecimal() or type(number) is not int or not lowest <= number < 1 << 63:
                raise ConfigError(
                    f"{option} has {number!r} for partition {partition!r} of {topic!r}: it must look like {example}, "
                    f"numbers from {lowest} on."
                )
            result[TopicPartition(_topic(option, topic), int(partition))] = number
    return result


def _bound(options: Mapping[str, str], side: str, default: str, *, or_latest: bool) -> Bound:
    """As in the connector, a timestamp for all overrides timestamps by partition, and those override offsets."""
    if f"{side}Timestamp" in options:
        return Bound(timestamp=_number(options, f"{side}Timestamp", lowest=0), or_latest=or_latest)
    if f"{side}OffsetsByTimestamp" in options:
        return Bound(timestamps=_by_partition(options, f"{side}OffsetsByTimestamp", 0), or_latest=or_latest)
    name = f"{side}Offsets"
    text = options.get(name, default).strip()
    if text.lower() in (EARLIEST, LATEST):
        if side == "ending" and text.lower() == EARLIEST:
            raise ConfigError("endingOffsets is earliest, and nothing would be read: say latest, or offsets by partition.")
        return Bound(word=text.lower())
    if not text.startswith("{"):
        raise ConfigError(f'{name} is {text!r}, and must be earliest, latest or JSON like {{"topic": {{"0": 23}}}}.')
    offsets = _by_partition(options, name, -2)
    if side == "ending" and EARLIEST_TIMESTAMP in offsets.values():
        raise ConfigError("endingOffsets has -2 (earliest), and nothing would be read there: say -1 (latest) or an offset.")
    return Bound(offsets=offsets)


def _number(options: Mapping[str, str], name: str, lowest: int = 1) -> int | None:
    if name not in options:
        return None
    text = options[name].strip()
    if not text.isdecimal() or not lowest <= int(text) < 1 << 63:
        raise ConfigError(f"{name} is {text!r}, and must be a whole number from {lowest} on.")
    return int(text)


def _choice(options: Mapping[str, str], name: str, default: str, allowed: tuple[str, ...]) -> str:
    text = options.get(name, default).strip().lower()
    if text not in allowed:
        raise ConfigError(f"{name} is {text!r}, and must be {' or '.join(allowed)}.")
    return text


def _duration(options: Mapping[str, str], name: str, default_ms: int) -> int:
    if name not in options:
        return default_ms
    found = re.fullmatch(r"(\d+)\s*([a-z]+)", options[name].strip().lower())
    if found is None or found[2] not in _UNITS:
        raise ConfigError(f"{name} is {options[name]!r}, and must be a number with a unit ({', '.join(_UNITS)}), like 15m.")
    return int(found[1]) * _UNITS[found[2]]


SPECIAL = {EARLIEST: EARLIEST_TIMESTAMP, LATEST: LATEST_TIMESTAMP}
"""The words for a bound, as the timestamps that ask a broker for it."""
