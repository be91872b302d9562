"""What texts of settings mean: the value of each option, and the roles, listeners and voters read from them.

An option without a text may fall back to another (``log.retention.ms`` to minutes, to hours). Whether a node may start with the
values: ``config.startup_checks``. Which layer each text comes from: ``config.resolve``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Self

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.listeners import EndPoint, parse_endpoints, parse_protocol_map
from tidelog.config.options import Option, Value
from tidelog.config.quorum_voters import Voter, parse_voters
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


class NodeValues(BrokerValues):
    """The settings of one node. Every option of ``BROKER_OPTIONS`` is an attribute."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """``given``: texts by option. ConfigError lists those that cannot be read, one sentence a line."""
        self.embedded = "process.roles" not in given
        """Whether roles and quorum were left to tidelog: one combined node with the controller inside, no listener for it."""
        texts = completed(given)
        self.__dict__.update(read(BROKER_OPTIONS.values(), texts))
        self.protocol_map: dict[str, str] = {}
        self.endpoints: tuple[EndPoint, ...] = ()
        self.advertised_endpoints: tuple[EndPoint, ...] = ()
        self.voters: tuple[Voter, ...] = ()
        self._read_listeners(texts)

    def with_values(self, values: Mapping[str, Value]) -> Self:
        """A copy with other values (by attribute). Its listeners and voters are those of the original, which are bound."""
        changed = copy.copy(self)
        changed.__dict__.update(values)
        return changed

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
        """The broker's listeners as clients see them.

        ``ports``: the port that each listener got, by listener name; it replaces port 0. ``hostname`` replaces an empty host.
        """
        told = {point.listener: point for point in self.advertised_endpoints}
        result: list[EndPoint] = []
        for point in self.broker_endpoints:
            chosen = told.get(point.listener, point) if told else point
            port = chosen.port or ports.get(point.listener, point.port)
            result.append(EndPoint(chosen.listener, chosen.protocol, chosen.host or hostname, port))
        return tuple(point for point in result if not told or point.listener in told)

    def _controller_names(self) -> frozenset[str]:
        return frozenset(name.upper() for name in self.controller_listener_names)

    def _read_listeners(self, given: Mapping[str, str]) -> None:
        protocols = parse_protocol_map("listener.security.protocol.map", self.listener_security_protocol_map)
        if "listener.security.protocol.map" not in given:
            # Kafka: the controller's listeners speak PLAINTEXT unless the map is given.
            for name in self._controller_names():
                protocols.setdefault(name, "PLAINTEXT")
        self.protocol_map = protocols
        self.endpoints = parse_endpoints("listeners", self.listeners, protocols)
        self.advertised_endpoints = parse_endpoints("advertised.listeners", self.advertised_listeners or (), protocols)
        self.voters = parse_voters("controller.quorum.voters", self.controller_quorum_voters)


def read(options: Iterable[Option], texts: Mapping[str, str]) -> dict[str, Value]:
    """The value of each option by attribute. ConfigError lists all texts that cannot be read."""
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


def completed(static: Mapping[str, str]) -> dict[str, str]:
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
