"""What settings of a resource must be besides right by themselves: groups within the broker's bounds, patterns that can be
matched, changes of a running broker that are small enough. Each function raises ConfigError about the first that is not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.group_options import CLIENT_METRICS_OPTIONS, GROUP_OPTIONS
from tidelog.config.options import Between, Dynamic
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.config.resolve import BrokerConfig

_THREADS: Final = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_SELECTORS: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_OFFSET_RESET: Final = r"earliest|latest|by_duration:P(?=[\dT])(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?"
_INTERVAL_MS: Final = (100, 3_600_000)


def check_broker_change(config: BrokerConfig, settings: Mapping[str, str], before: Mapping[str, str]) -> None:
    """A running broker's dynamic settings. Thread counts move by a factor of two at most, as in Kafka. ``before``: what the same
    layer says now."""
    settings = {name: text for name, text in settings.items() if before.get(name) != text}
    for name in _THREADS:
        if name in settings:
            check_threads(name, getattr(config, BROKER_OPTIONS[name].attribute), int(settings[name]))
    overrides = settings.get("max.connections.per.ip.overrides") or config.max_connections_per_ip_overrides
    if int(settings.get("max.connections.per.ip", "1")) == 0 and not overrides:
        raise ConfigError(
            "max.connections.per.ip is 0, which shuts everybody out unless max.connections.per.ip.overrides is set."
        )
    for item in filter(None, (part.strip() for part in settings.get("max.connections.per.ip.overrides", "").split(","))):
        host, colon, count = item.rpartition(":")
        if not (colon and host and count.isdecimal()):
            raise ConfigError(f"max.connections.per.ip.overrides holds {item!r}, but must hold host:number, separated by commas.")
    known = (*(config.log_dirs or ()), *config.log_dir)
    for path in filter(None, (part.strip() for part in settings.get("cordoned.log.dirs", "").split(","))):
        if path != "*" and path not in known:
            raise ConfigError(f"cordoned.log.dirs holds {path}, which is not among log.dirs. Name one of them, or * for all.")


def check_stores_have_a_listener(settings: Mapping[str, str]) -> None:
    """Keys and passwords of a broker that runs belong to a listener, so that a wrong one does not close all."""
    bare = [name for name in settings if name.startswith(("ssl.keystore.", "ssl.truststore.", "ssl.key."))]
    bare = [name for name in bare if name in BROKER_OPTIONS and BROKER_OPTIONS[name].dynamic is Dynamic.PER_BROKER]
    if bare:
        named = ", ".join(sorted(bare))
        raise ConfigError(f"While a node runs, these change for one listener at a time: write listener.name.NAME. before {named}")


def check_threads(name: str, now: int, wanted: int) -> None:
    """ConfigError for more than double or less than half of the threads that there are ``now``."""
    if wanted > now * 2:
        raise ConfigError(f"{name} is to be {wanted}, but may not be more than double the current value {now}. Go in steps.")
    if wanted < now // 2:
        raise ConfigError(f"{name} is to be {wanted}, but may not be less than half the current value {now}. Go in steps.")


def check_group(config: BrokerConfig, settings: Mapping[str, str]) -> None:
    """A group's settings, within what the broker allows any group."""
    for name, text in settings.items():
        value = GROUP_OPTIONS[name].parse(text)
        if name == "share.auto.offset.reset" and not re.fullmatch(_OFFSET_RESET, text, re.I):
            raise ConfigError(f"{name} is {text!r}, but must be earliest, latest or by_duration:PnDTnHnMn.nS.")
        if name == "errors.deadletterqueue.topic.name" and text.startswith("__"):
            raise ConfigError(f"{name} is {text}, the name of an internal topic. Choose one that does not begin with __.")
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        of_broker = BROKER_OPTIONS.get(f"group.{name}")
        check = of_broker.check if of_broker is not None else None
        if isinstance(check, Between) and check.low is not None and value < check.low:
            raise ConfigError(f"{name} is {value}, but must be at least {check.low}.")
        protocol, _, what = name.partition(".")
        for word, sign in (("min", 1), ("max", -1)):
            bound = f"group.{protocol}.{word}.{what.removeprefix('num.')}"
            if bound in BROKER_OPTIONS:
                limit: int = getattr(config, BROKER_OPTIONS[bound].attribute)
                if sign * value < sign * limit:
                    side = "greater than or equal to" if sign > 0 else "less than or equal to"
                    raise ConfigError(f"{name} must be {side} {bound}, which is {limit}; it is {value}.")
    for protocol in ("consumer", "share", "streams"):
        _check_heartbeat(config, settings, protocol)


def _check_heartbeat(config: BrokerConfig, settings: Mapping[str, str], protocol: str) -> None:
    session, heartbeat = f"{protocol}.session.timeout.ms", f"{protocol}.heartbeat.interval.ms"
    if session not in settings and heartbeat not in settings:
        return
    values: list[int] = []
    for name in (session, heartbeat):
        default: int = getattr(config, BROKER_OPTIONS[f"group.{name}"].attribute)
        values.append(int(settings[name]) if name in settings else default)
    if values[0] <= values[1]:
        raise ConfigError(f"{session} must be greater than {heartbeat}, which is {values[1]}; it is {values[0]}.")


def check_client_metrics(settings: Mapping[str, str]) -> None:
    """What clients are matched by: selectors that exist, patterns that compile."""
    for name, text in settings.items():
        CLIENT_METRICS_OPTIONS[name].parse(text)
    for item in filter(None, (part.strip() for part in settings.get("match", "").split(","))):
        selector, equals, pattern = item.partition("=")
        try:
            re.compile(pattern)
        except re.error:
            equals = ""
        if not equals or selector not in _SELECTORS:
            raise ConfigError(f"Illegal client matching pattern: {item}")


def interval_problem(settings: Mapping[str, str]) -> str | None:
    """Why clients cannot send their metrics that often; Kafka answers it with another code than the rest."""
    low, high = _INTERVAL_MS
    text = settings.get("interval.ms")
    if text is None or low <= int(text) <= high:
        return None
    return f"Invalid value {text} for interval.ms, interval must be between {low} and {high} (1 hour)"
