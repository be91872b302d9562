"""What a node's settings are: files, flags and dynamic changes laid over each other, checked, and read as typed attributes.

Layers, the strongest first: dynamic for this broker, dynamic for all brokers, static (file and ``--override``), defaults.
An option that no layer sets may fall back to another (``log.retention.ms`` to minutes, to hours). Code reads
``config.log_retention_ms``; texts are read by ``config.describe`` alone. Dynamic changes update the same object, in place, so
that whoever holds it sees them (KIP-226).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.checks import dynamic_problems, start_problems
from tidelog.config.leftovers import explain_unknown, unknown_topic_option
from tidelog.config.listeners import EndPoint, Voter, parse_endpoints, parse_protocol_map, parse_voters
from tidelog.config.options import Dynamic, Option, Value
from tidelog.config.topic import TOPIC_OPTIONS
from tidelog.config.topic_config import TopicConfig
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.config.typed import BrokerValues
else:
    BrokerValues = object  # annotations alone, and 360 of them: a node need not read them to start

_EMBEDDED: Final = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
}
_EMBEDDED_LISTENERS: Final = "PLAINTEXT://localhost:9092"
_MAX_CACHED_TOPIC_CONFIGS: Final = 10_000


class BrokerConfig(BrokerValues):
    """The settings of one node. Made by ``from_properties``; every option of ``BROKER_OPTIONS`` is an attribute."""

    def __init__(self, static: Mapping[str, str]) -> None:
        """Prefer ``from_properties``: this reads values, and does not ask whether a node may start with them."""
        self.embedded = "process.roles" not in static
        """Whether roles and quorum were left to tidelog: one combined node with the controller inside, no listener for it."""
        self.static: dict[str, str] = _completed(static)
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        self.warnings: tuple[str, ...] = ()
        self._topic_configs: dict[frozenset[tuple[str, str]], TopicConfig] = {}
        values = self._resolve(BROKER_OPTIONS.values(), self.static)
        self.__dict__.update(values)
        self.protocol_map: dict[str, str] = {}
        self.endpoints: tuple[EndPoint, ...] = ()
        self.advertised_endpoints: tuple[EndPoint, ...] = ()
        self.voters: tuple[Voter, ...] = ()
        self._read_listeners()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """The settings of a node that may start with them. ConfigError lists all that is wrong, one sentence a line."""
        config = cls(properties)
        problems = start_problems(config, properties)
        if problems:
            raise ConfigError("\n".join(problems))
        config.warnings = _warnings(config, properties)
        return config

    def __repr__(self) -> str:
        return f"BrokerConfig(node_id={self.node_id}, {len(self.static)} set)"

    @property
    def is_broker(self) -> bool:
        """Whether clients are served."""
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        """Whether the node is a voter of the metadata quorum."""
        return "controller" in self.process_roles

    @property
    def broker_endpoints(self) -> tuple[EndPoint, ...]:
        """Listeners for clients and other brokers."""
        return tuple(point for point in self.endpoints if point.listener not in self._controller_names())

    @property
    def controller_endpoints(self) -> tuple[EndPoint, ...]:
        """Listeners of the controller; empty for the embedded one."""
        return tuple(point for point in self.endpoints if point.listener in self._controller_names())

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener on which brokers talk to each other: inter.broker.listener.name, else the one that is called
        like security.inter.broker.protocol. Where there is none, Kafka does not start; here the first listener does."""
        named = self.inter_broker_listener_name or self.security_inter_broker_protocol
        names = [point.listener for point in self.broker_endpoints]
        return named.upper() if named.upper() in names or not names else names[0]

    def advertised(self, ports: Mapping[str, int], hostname: str) -> tuple[EndPoint, ...]:
        """What clients are told of the broker's listeners.

        ``ports``: the port that each listener got, by listener name; it replaces port 0. ``hostname`` replaces an empty host.
        """
        told = {point.listener: point for point in self.advertised_endpoints}
        result: list[EndPoint] = []
        for point in self.broker_endpoints:
            chosen = told.get(point.listener, point) if told else point
            port = chosen.port or ports.get(point.listener, point.port)
            result.append(EndPoint(chosen.listener, chosen.protocol, chosen.host or hostname, port))
        return tuple(point for point in result if not told or point.listener in told)

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The typed settings of a topic with these settings of its own. ConfigError names a setting that does not hold."""
        key = frozenset(overrides.items())
        found = self._topic_configs.get(key)
        if found is None:
            if len(self._topic_configs) >= _MAX_CACHED_TOPIC_CONFIGS:
                self._topic_configs.clear()
            found = self._topic_configs[key] = self._read_topic(overrides)
        return found

    def apply_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> frozenset[str]:
        """Take over the dynamic settings of all brokers and of this one; the names of the options whose value changed.

        Both are complete: what is no longer in them is unset. ConfigError when one does not hold; then nothing changed.
        """
        before, values = self._check_dynamic(default, broker)
        self.__dict__.update(values)
        self.dynamic_default = dict(default)
        self.dynamic_broker = dict(broker)
        self._topic_configs.clear()
        return frozenset(
            option.name
            for option in BROKER_OPTIONS.values()
            if option.attribute in values and before[option.attribute] != values[option.attribute]
        )

    def check_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """ConfigError unless ``apply_dynamic`` would take these; nothing changes."""
        self._check_dynamic(default, broker)

    def _check_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> tuple[dict[str, Value], dict[str, Value]]:
        """The values by attribute as they are, and as they would be."""
        merged = {**self.static, **default, **broker}
        dynamic = [option for option in BROKER_OPTIONS.values() if option.dynamic is not Dynamic.READ_ONLY]
        values = self._resolve(dynamic, merged)
        before = {option.attribute: getattr(self, option.attribute) for option in dynamic}
        self.__dict__.update(values)
        try:
            problems = dynamic_problems(self, before, {**default, **broker})
        finally:
            self.__dict__.update(before)
        if problems:
            raise ConfigError("\n".join(problems))
        return before, values

    def _resolve(self, options: Iterable[Option], texts: Mapping[str, str]) -> dict[str, Value]:
        problems: list[str] = []
        values: dict[str, Value] = {}
        for option in options:
            try:
                values[option.attribute] = _effective(option, texts)
            except ConfigError as error:
                problems.append(str(error))
        if problems:
            raise ConfigError("\n".join(problems))
        return values

    def _controller_names(self) -> frozenset[str]:
        return frozenset(name.upper() for name in self.controller_listener_names)

    def _read_listeners(self) -> None:
        protocols = parse_protocol_map("listener.security.protocol.map", self.listener_security_protocol_map)
        if "listener.security.protocol.map" not in self.static:
            # Kafka: the controller's listeners speak PLAINTEXT unless the map is given.
            for name in self._controller_names():
                protocols.setdefault(name, "PLAINTEXT")
        self.protocol_map = protocols
        self.endpoints = parse_endpoints("listeners", self.listeners, protocols)
        self.advertised_endpoints = parse_endpoints("advertised.listeners", self.advertised_listeners or (), protocols)
        self.voters = parse_voters("controller.quorum.voters", self.controller_quorum_voters)

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


def _completed(static: Mapping[str, str]) -> dict[str, str]:
    """The given settings, with what Kafka and tidelog add to them: node.id and broker.id stand for each other (Kafka), and a
    file without process.roles describes one combined node (tidelog)."""
    result = dict(static)
    for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if name not in result and other in result and not result[other].strip().startswith("-"):
            result[name] = result[other]
    if "process.roles" not in result:
        for name, text in _EMBEDDED.items():
            result.setdefault(name, text)
        result.setdefault("listeners", _EMBEDDED_LISTENERS)
        result.setdefault("node.id", "1")
        if result.get("broker.id", "-1").strip() == "-1":
            result["broker.id"] = result["node.id"]
    return result


def _effective(option: Option, texts: Mapping[str, str]) -> Value:
    """The value of an option: its own text, else what it falls back to, else its default."""
    if option.name in texts:
        return option.parse(texts[option.name])
    for name, _ in option.falls_back_to:
        if name in texts:
            return _scaled(option, name, BROKER_OPTIONS[name].parse(texts[name]))
    if option.default is not None:
        return option.default
    for name, _ in option.falls_back_to:
        if BROKER_OPTIONS[name].default is not None:
            return _scaled(option, name, BROKER_OPTIONS[name].default)
    return () if option.required and option.type.name == "LIST" else None


def _scaled(option: Option, name: str, value: Value) -> Value:
    factor = dict(option.falls_back_to)[name]
    if factor == 1 or not isinstance(value, int):
        return value
    # A negative number of hours means "for ever", as -1 ms does.
    return -1 if value < 0 else value * factor


def _warnings(config: BrokerConfig, properties: Mapping[str, str]) -> tuple[str, ...]:
    """What a person should know about settings that were given and do nothing here."""
    result: list[str] = []
    for name, text in properties.items():
        option = BROKER_OPTIONS.get(name)
        if option is None:
            result.append(explain_unknown(name))
        elif option.inert is not None and option.parse(text) != option.default:
            result.append(f"{name} has no effect: {option.inert}.")
    return tuple(result)
