"""Rows of DescribeConfigs: what each setting is, which layer it comes from, and what it would be without that layer.

Held equal to answers of Apache Kafka 4.3.1 by tests. Some of it is not obvious: a synonym list is empty as long as the
first name in it has no value of its own, even where a fallback decides (``retention.ms`` while only ``log.retention.hours``
is known); values are shown parsed and written again (``0.90`` becomes ``0.9``), broker synonyms as they were given; a name in
no table is listed as sensitive, since it may be a secret. Rows come in Kafka's order (``listing_order``).
Source: KIP-226, KIP-569.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.group_options import CLIENT_METRICS_OPTIONS, GROUP_OPTIONS
from tidelog.config.listing_order import broker_order, hash_map_order
from tidelog.config.options import Dynamic, Option, Type, Value, value_text
from tidelog.config.resolve import BrokerConfig
from tidelog.config.topic_options import TOPIC_OPTIONS

_LISTENER_PREFIX: Final = "listener.name."
THROTTLED_RATES: Final = (
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
"""Settings that Kafka has in no table and no file, only dynamically: what reassign-partitions limits moves with (KIP-73)."""

_MORE_SYNONYMS: Final = {"log.retention.minutes": ("log.retention.hours",)}
"""Synonyms besides the options that a setting falls back to."""


class Source(IntEnum):
    """Where a value comes from; the number on the wire."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """One layer's word on a setting, the strongest first."""

    name: str
    value: str | None
    source: Source


class ConfigRow(NamedTuple):
    """One setting in an answer. ``value`` is None for secrets and for what is not set."""

    name: str
    value: str | None
    source: Source
    read_only: bool
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    type: Type
    doc: str


def describe_broker(config: BrokerConfig, names: Iterable[str] | None = None) -> list[ConfigRow]:
    """The settings of this broker. None or no names: all. Names that are not set and in no table are left out."""
    given = {**config.static, **config.dynamic_default, **config.dynamic_broker}
    listed = {name: None for name, option in BROKER_OPTIONS.items() if not option.internal} | dict.fromkeys(given)
    return [_broker_row(config, name) for name in _chosen(broker_order(BROKER_OPTIONS, listed, entries=len(given)), names)]


def describe_broker_default(config: BrokerConfig, names: Iterable[str] | None = None) -> list[ConfigRow]:
    """The dynamic settings of all brokers together: the resource without a name. Only what is set, as it was given."""
    rows: list[ConfigRow] = []
    for name in _chosen(hash_map_order(config.dynamic_default), names):
        option = broker_option(name)
        sensitive = _is_secret(name, option)
        text = None if sensitive else config.dynamic_default[name]
        synonym = Synonym(name, text, Source.DYNAMIC_DEFAULT_BROKER)
        rows.append(_row(name, option, text, (synonym,), read_only=_is_read_only(name)))
    return rows


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str], names: Iterable[str] | None = None) -> list[ConfigRow]:
    """The settings of a topic with these settings of its own. None or no names: all."""
    listed = hash_map_order(name for name, option in TOPIC_OPTIONS.items() if not option.internal or name in overrides)
    rows: list[ConfigRow] = []
    for name in _chosen(listed, names):
        option = TOPIC_OPTIONS[name]
        follows = [fallback for fallback, _ in option.falls_back_to]
        synonyms = _broker_synonyms(config, follows[0]) if follows else ()
        if name in overrides:
            text = value_text(option.parse(overrides[name]))
            synonyms = (Synonym(name, text, Source.TOPIC), *synonyms)
        else:
            text = value_text(_followed(config, option))
        rows.append(_row(name, option, text, synonyms, read_only=False))
    return rows


def describe_group(config: BrokerConfig, overrides: Mapping[str, str], names: Iterable[str] | None = None) -> list[ConfigRow]:
    """The settings of a group with these settings of its own. None or no names: all."""
    rows: list[ConfigRow] = []
    for name in _chosen(hash_map_order(GROUP_OPTIONS), names):
        option = GROUP_OPTIONS[name]
        if option.falls_back_to:
            synonyms = _broker_synonyms(config, option.falls_back_to[0][0])
        else:
            synonyms = (Synonym(name, value_text(option.default), Source.DEFAULT),)
        text = value_text(_followed(config, option))
        if name in overrides:
            text = value_text(option.parse(overrides[name]))
            synonyms = (Synonym(name, text, Source.GROUP), *synonyms)
        rows.append(_row(name, option, text, synonyms, read_only=False))
    return rows


def describe_client_metrics(overrides: Mapping[str, str], names: Iterable[str] | None = None) -> list[ConfigRow]:
    """The settings of a client metrics subscription. None or no names: all."""
    rows: list[ConfigRow] = []
    for name in _chosen(hash_map_order(CLIENT_METRICS_OPTIONS), names):
        option = CLIENT_METRICS_OPTIONS[name]
        text = value_text(option.parse(overrides[name]) if name in overrides else option.default)
        synonyms = (Synonym(name, text, Source.CLIENT_METRICS),) if name in overrides else ()
        rows.append(_row(name, option, text, synonyms, read_only=False))
    return rows


def _chosen(listed: Iterable[str], names: Iterable[str] | None) -> list[str]:
    wanted = set(names or ())
    return [name for name in listed if not wanted or name in wanted]


def _row(
    name: str,
    option: Option | None,
    value: str | None,
    synonyms: tuple[Synonym, ...],
    *,
    read_only: bool,
    is_provided: bool = False,
) -> ConfigRow:
    return ConfigRow(
        name=name,
        value=value,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        read_only=read_only,
        is_sensitive=is_provided or _is_secret(name, option),
        synonyms=synonyms,
        type=option.type if option is not None else Type.UNKNOWN,
        doc=option.doc if option is not None else "",
    )


def _broker_row(config: BrokerConfig, name: str) -> ConfigRow:
    option = broker_option(name)
    value: str | None = None
    is_provided = name in config.provided
    if is_provided:
        pass
    elif option is not None and not option.sensitive:
        text = next(
            (layer[name] for layer in (config.dynamic_broker, config.dynamic_default, config.static) if name in layer), None
        )
        value = value_text(option.default if text is None else option.parse(text))
    elif name in THROTTLED_RATES:
        value = config.dynamic_broker.get(name, config.dynamic_default.get(name))
    synonyms = _broker_synonyms(config, name)
    return _row(name, option, value, synonyms, read_only=_is_read_only(name), is_provided=is_provided)


def _is_secret(name: str, option: Option | None) -> bool:
    """A name outside the tables."""
    return name not in THROTTLED_RATES if option is None else option.sensitive


def _is_read_only(name: str) -> bool:
    option = BROKER_OPTIONS.get(name)
    return option is None or option.dynamic is Dynamic.READ_ONLY


def broker_option(name: str) -> Option | None:
    """The option behind a name, also behind ``listener.name.<listener>.<option>``."""
    return BROKER_OPTIONS.get(name) or BROKER_OPTIONS.get(_for_one_listener(name) or "")


def _for_one_listener(name: str) -> str | None:
    if not name.startswith(_LISTENER_PREFIX):
        return None
    rest = name.removeprefix(_LISTENER_PREFIX).partition(".")[2]
    # SASL settings of a listener may have the mechanism in between: listener.name.l.plain.sasl.jaas.config.
    return rest if rest in BROKER_OPTIONS else rest.partition(".")[2]


def _broker_synonyms(config: BrokerConfig, name: str) -> tuple[Synonym, ...]:
    option = broker_option(name)
    if option is None or name == "log.dirs":
        chain = [name]  # Kafka does not count log.dir as another name of log.dirs
    elif option.name != name:
        chain = [name, option.name]
    else:
        chain = [name, *(fallback for fallback, _ in option.falls_back_to), *_MORE_SYNONYMS.get(name, ())]
    entries = tuple(_entries(config, chain))
    if not any(entry.name == name for entry in entries):
        return ()
    if _is_secret(name, option):
        return tuple(Synonym(entry.name, None, entry.source) for entry in entries)
    return entries


def _entries(config: BrokerConfig, chain: list[str]) -> Iterator[Synonym]:
    layers = (
        (config.dynamic_broker, Source.DYNAMIC_BROKER),
        (config.dynamic_default, Source.DYNAMIC_DEFAULT_BROKER),
        (config.static, Source.STATIC_BROKER),
    )
    for layer, source in layers:
        for name in chain:
            if name in layer:
                yield Synonym(name, None if name in config.provided else layer[name], source)
    for name in chain:
        option = BROKER_OPTIONS.get(name)
        if option is not None and option.default is not None:
            yield Synonym(name, value_text(option.default), Source.DEFAULT)


def _followed(config: BrokerConfig, option: Option) -> Value:
    if not option.falls_back_to:
        return option.default
    value: Value = getattr(config, BROKER_OPTIONS[option.falls_back_to[0][0]].attribute)
    return value
