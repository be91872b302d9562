"""Settings with where their values come from, what they would be by default, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tidelog.client.admin.results import ResourceType
from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Node, To
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

SOURCES: Final = {1: "topic", 2: "broker", 3: "cluster", 4: "static", 5: "default", 6: "logger", 7: "client-metrics", 8: "group"}
TYPES: Final = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}
_UNITS: Final = {".minutes": 60_000, ".hours": 3_600_000}
OWN_SOURCES: Final = {ResourceType.TOPIC: (1,), ResourceType.BROKER: (2, 3, 4), ResourceType.GROUP: (8,)}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. ``value`` and ``default`` are None where they are sensitive or not known; ``differs``: it was set here."""

    name: str
    value: str | None
    default: str | None
    source: str
    differs: bool
    read_only: bool
    sensitive: bool
    kind: str
    documentation: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "default": self.default,
            "source": self.source,
            "differs": self.differs,
            "read_only": self.read_only,
            "sensitive": self.sensitive,
            "type": self.kind,
            "documentation": self.documentation,
        }


def settings(kind: ResourceType, name: str, keys: Iterable[str] | None = None) -> Call[list[Setting]]:
    """All settings of a topic, broker or group, or those in ``keys``: what was set first, then by name. KafkaError."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    to: To = Node(int(name)) if kind == ResourceType.BROKER and name.isdecimal() else None
    (result,) = (yield Ask(request, to)).results
    check(result.error_code, result.error_message)
    found = [_setting(kind, row) for row in result.configs]
    return sorted(found, key=lambda each: (not each.differs, each.name))


def min_in_sync(topics: Iterable[str]) -> Call[dict[str, int]]:
    """``min.insync.replicas`` of topics; 1 where it may not be read."""
    names = list(topics)
    key = "min.insync.replicas"
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=[key])
            for name in names
        ]
    )
    results = (yield Ask(request)).results if names else []
    found = dict.fromkeys(names, 1)
    for result in results:
        for row in result.configs:
            if row.name == key and row.value and row.value.isdecimal():
                found[result.resource_name] = int(row.value)
    return found


def _in_unit_of(name: str, synonym: Any) -> str | None:
    """The value of a broker's setting in the unit of the topic's: ``log.retention.hours`` stands for ``retention.ms``."""
    factor = next((each for ending, each in _UNITS.items() if synonym.name.endswith(ending)), None)
    if factor is None or not name.endswith(".ms") or synonym.value is None:
        value: str | None = synonym.value
        return value
    return str(int(synonym.value) * factor) if synonym.value.isdecimal() else synonym.value


def _setting(kind: ResourceType, row: Any) -> Setting:
    own = OWN_SOURCES.get(kind, ())
    beneath = [each for each in row.synonyms if each.source not in own]
    default = _in_unit_of(row.name, beneath[0]) if beneath else None
    return Setting(
        row.name,
        row.value,
        row.value if row.config_source not in own and not beneath else default,
        SOURCES.get(row.config_source, "unknown"),
        row.config_source in own,
        row.read_only,
        row.is_sensitive,
        TYPES.get(row.config_type, "unknown"),
        row.documentation or None,
    )
