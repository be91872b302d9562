"""What a broker refuses of its own dynamic settings, besides what their tables say: settings of its listeners, limits of
connections, names of Java classes. Only names whose value changes are looked at: an old mistake does not stop all changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.describe import THROTTLED_RATES
from tidelog.config.jaas import parse_jaas
from tidelog.config.options import AT_LEAST_0, CLUSTER, LONG, LONG_MAX, MEDIUM, Option, Type, value_text
from tidelog.config.resource_validation import check_threads
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.config.resolve import BrokerConfig

_OF_LISTENER: Final = re.compile(r"listener\.name\.([^.]*)\.(.*)")
_THREADS: Final = "num.network.threads"
_CONNECTIONS: Final = ("max.connections", "max.connection.creation.rate")
_OVERRIDES: Final = "max.connections.per.ip.overrides"
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*")
REPORTERS: Final = "metric.reporters"
_LOGIN_MODULE: Final = "sasl.jaas.config"
_RATES: Final = {
    name: Option(name, LONG, LONG_MAX, MEDIUM, CLUSTER, "Bytes a second.", check=AT_LEAST_0) for name in THROTTLED_RATES
}


def check_change(config: BrokerConfig, settings: Mapping[str, str], before: Mapping[str, str], *, cluster_wide: bool) -> None:
    """ConfigError about the first setting that this broker could not have. ``settings``: one layer with the change, of all
    brokers or of this one, whose values the tables allow; ``before``: the same layer now."""
    changed = {name: text for name, text in settings.items() if before.get(name) != text}
    of_listeners = {name: found for name in changed if (found := _OF_LISTENER.fullmatch(name))}
    if cluster_wide:
        own = [name for name, found in of_listeners.items() if found[2] not in (*_CONNECTIONS, _THREADS)]
        if own:
            named = ", ".join(sorted(own))
            raise ConfigError(f"These belong to one broker and have no cluster-wide default; name the broker: {named}")
    for name, text in changed.items():
        if text and (name == _LOGIN_MODULE or name.endswith(f".{_LOGIN_MODULE}")):
            parse_jaas(text, name)
        if (found := of_listeners.get(name)) is not None:
            _check_of_listener(config, name, found[1], found[2], text, before)
        elif name in _RATES:
            _RATES[name].parse(text)
        elif name in BROKER_OPTIONS:
            _check_class(name, BROKER_OPTIONS[name], text)
    for name in _CONNECTIONS:
        if name in changed and int(changed[name]) < 1:
            raise ConfigError(f"{name} is {changed[name]}, which shuts every client out; it must be at least 1.")
    for item in changed.get(_OVERRIDES, "").split(","):
        host = item.strip().rpartition(":")[0]
        if not _HOST.fullmatch(host):
            raise ConfigError(f"{_OVERRIDES} holds {host!r}, which is no host or address; write IPv6 addresses without brackets.")


def _check_of_listener(config: BrokerConfig, name: str, listener: str, base: str, text: str, before: Mapping[str, str]) -> None:
    """A setting of one listener has the type and bounds of the option; its threads change in steps, if the listener is open."""
    option = BROKER_OPTIONS.get(base)
    if option is None or base in _CONNECTIONS:
        return
    try:
        option.parse(text)
    except ConfigError as error:
        raise ConfigError(str(error).replace(base, name, 1)) from None
    _check_class(name, option, text)
    if base == "listeners" and not text.strip():
        raise ConfigError(f"{name} is empty, but must be a list of addresses.")
    if base == _THREADS and listener in {point.listener.lower() for point in config.broker_endpoints}:
        layers = (before, config.dynamic_broker, config.dynamic_default, config.static)
        now = next((layer[name] for layer in layers if name in layer), None)
        try:
            threads = getattr(config, option.attribute) if now is None else int(str(option.parse(now)))
        except ConfigError:
            return  # stored before names of listeners were checked; this change mends it
        check_threads(name, threads, int(text))


def _check_class(name: str, option: Option, text: str) -> None:
    """Java classes are not loaded, so a change that names another one would not be made."""
    known = value_text(option.default)
    if (option.type is Type.CLASS and text != known) or (option.name == REPORTERS and text.strip() not in ("", known)):
        instead = f"leave {known}" if known else "remove it"
        raise ConfigError(f"{name} is {text!r}, a Java class, which cannot be loaded: {instead}.")
