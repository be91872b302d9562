"""What a node's settings are: files, flags and dynamic changes laid over each other, checked, and read as typed attributes.

Layers, the strongest first: dynamic for this broker, dynamic for all brokers, static (file and ``--override``), defaults.
An option that no layer sets may fall back to another (``log.retention.ms`` to minutes, to hours). Code reads
``config.log_retention_ms``; texts are read by ``config.describe`` alone. Dynamic changes update the same object, in place, so
that every holder of the object sees them (KIP-226).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.options import Dynamic, Value
from tidelog.config.startup_checks import change_problems, dynamic_problems, start_problems
from tidelog.config.tidelog_options import HTTP_SECURITY
from tidelog.config.topic_config import TopicConfig
from tidelog.config.topic_options import TOPIC_OPTIONS
from tidelog.config.unknown_settings import AUTHORIZER_SETTINGS, explain_unknown, unknown_topic_option
from tidelog.config.values import NodeValues, completed, read
from tidelog.model.errors import ConfigError

_MAX_CACHED_TOPIC_CONFIGS: Final = 10_000
_DYNAMIC: Final = tuple(option for option in BROKER_OPTIONS.values() if option.dynamic is not Dynamic.READ_ONLY)


class DynamicPlan(NamedTuple):
    """A change of dynamic settings that has passed all checks. Applied by ``BrokerConfig.apply``."""

    default: Mapping[str, str]
    broker: Mapping[str, str]
    values: Mapping[str, Value]
    """By attribute, of every option that can be dynamic."""


class BrokerConfig(NodeValues):
    """The settings of one node while it runs, with their layers. Made by ``from_properties``."""

    def __init__(self, static: Mapping[str, str]) -> None:
        """Prefer ``from_properties``: this does not check whether a node may start with these settings."""
        super().__init__(static)
        self.static: dict[str, str] = completed(static)
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        self.provided: frozenset[str] = frozenset()
        """The static settings whose values config providers returned; answers and errors do not show them."""
        self.warnings: tuple[str, ...] = ()
        self._topic_configs: dict[frozenset[tuple[str, str]], TopicConfig] = {}

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], provided: frozenset[str] | None = None) -> BrokerConfig:
        """The settings of a node that may start with them. ConfigError lists all that is wrong, one sentence a line.

        ``provided``: the names of settings whose values config providers returned; None: no provider was asked.
        """
        if not provided:
            return cls._checked(properties, resolved=provided is not None)
        from tidelog.config.providers import without_values  # Few nodes have providers.

        try:
            config = cls._checked(properties, resolved=True)
        except ConfigError as error:
            raise ConfigError(without_values(str(error), properties, provided)) from None
        config.provided = provided
        config.warnings = tuple(without_values(each, properties, provided) for each in config.warnings)
        return config

    @classmethod
    def _checked(cls, properties: Mapping[str, str], *, resolved: bool) -> BrokerConfig:
        config = cls(properties)
        problems = start_problems(config, properties)
        if config.config_providers and not resolved:
            problems.append("config.providers is set, but values are resolved only in the file that a node is started with.")
        if problems:
            raise ConfigError("\n".join(problems))
        config.warnings = tuple(_warnings(properties))
        if any("ssl." in name for name in properties):
            from tidelog.config.listener_tls import tls_warnings  # Only settings of TLS can lack an effect.

            config.warnings += tuple(tls_warnings(properties, config.endpoints, config.protocol_map))
        if any("sasl.oauthbearer." in name or "sasl.login." in name for name in properties):
            from tidelog.config.listener_sasl import login_warnings  # Only settings of logins by tokens can lack an effect.

            config.warnings += tuple(login_warnings(config, properties))
        if config.tidelog_http_listener and ("authorizer.class.name" in properties or any(map(_secures_http, properties))):
            from tidelog.config.http_endpoint import endpoint_warnings  # Only a secured node can leave it open.

            config.warnings += tuple(endpoint_warnings(config, properties))
        return config

    def __repr__(self) -> str:
        return f"BrokerConfig(node_id={self.node_id}, {len(self.static)} set)"

    def plan_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str], *, stored: bool = False) -> DynamicPlan:
        """Checks the dynamic settings of all brokers and of this one; nothing changes. Both layers are complete: a setting that
        is not in them is unset. ``stored``: they are no client's change, which may be refused more. ConfigError lists what is
        wrong with them."""
        values = read(_DYNAMIC, {**self.static, **default, **broker})
        after = self.with_values(values)
        problems = dynamic_problems(self, after, {**default, **broker}) + ([] if stored else change_problems(self, after))
        if problems:
            raise ConfigError(self._shown("\n".join(problems)))
        return DynamicPlan(dict(default), dict(broker), values)

    def _shown(self, text: str) -> str:
        """A message without the values that config providers returned."""
        if not self.provided:
            return text
        from tidelog.config.providers import without_values

        return without_values(text, self.static, self.provided)

    def apply(self, plan: DynamicPlan) -> frozenset[str]:
        """Replaces the dynamic settings; returns the names of the options whose value changed."""
        changed = frozenset(each.name for each in _DYNAMIC if getattr(self, each.attribute) != plan.values[each.attribute])
        self.__dict__.update(plan.values)
        self.dynamic_default, self.dynamic_broker = dict(plan.default), dict(plan.broker)
        self._topic_configs.clear()
        return changed

    def apply_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> frozenset[str]:
        """Takes over stored settings. ConfigError when one of them cannot be; then nothing changed."""
        return self.apply(self.plan_dynamic(default, broker, stored=True))

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The typed settings of a topic with these settings of its own. ConfigError names a setting that does not hold."""
        key = frozenset(overrides.items())
        found = self._topic_configs.get(key)
        if found is None:
            if len(self._topic_configs) >= _MAX_CACHED_TOPIC_CONFIGS:
                self._topic_configs.clear()
            found = self._topic_configs[key] = self._read_topic(overrides)
        return found

    def _read_topic(self, overrides: Mapping[str, str]) -> TopicConfig:
        for name in overrides:
            if name not in TOPIC_OPTIONS:
                raise unknown_topic_option(name, TOPIC_OPTIONS)
        values: dict[str, Any] = {}
        for option in TOPIC_OPTIONS.values():
            if option.name in overrides:
                value = option.parse(overrides[option.name])
            elif option.falls_back_to:
                value = getattr(self, BROKER_OPTIONS[option.falls_back_to[0][0]].attribute)
            else:
                value = option.default
            values[option.attribute] = value
        values["cleanup_policy"] = frozenset(values["cleanup_policy"])
        return TopicConfig(**values)


def _secures_http(name: str) -> bool:
    return name.startswith(HTTP_SECURITY)


def _warnings(properties: Mapping[str, str]) -> tuple[str, ...]:
    """What a person should know about settings that were given and do nothing here."""
    result: list[str] = []
    authorizes = bool(properties.get("authorizer.class.name", "").strip())
    has_providers = bool(properties.get("config.providers", "").strip())
    for name, text in properties.items():
        option = BROKER_OPTIONS.get(name)
        if option is None:
            if has_providers and name.startswith("config.providers."):
                continue
            if authorizes and name in AUTHORIZER_SETTINGS:
                continue
            if warning := explain_unknown(name):
                result.append(warning)
        elif option.inert is not None and option.parse(text) != option.default:
            result.append(f"{name} has no effect: {option.inert}.")
    if authorizes and "," in properties.get("super.users", ""):
        from tidelog.config.authorizer import super_users_warning

        result += filter(None, [super_users_warning(properties)])
    if not authorizes and (properties.get("tidelog.audit.file") or properties.get("tidelog.audit.topic")):
        result.append("The audit has logins only: without authorizer.class.name no decision is made that it could keep.")
    return tuple(result)
