"""A case: an API and a state of the resources that its request names. With a version and a user it is a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from tests.security_matrix.principals import HIDDEN, OPEN
from tidelog.broker.table import API_TABLE, BROKER_APIS, CONTROLLER_APIS
from tidelog.protocol.api_keys import ApiKey

UNKNOWN_ID = b"\x11" * 16
ANOTHER_UNKNOWN_ID = b"\x22" * 16
TOPICS = {
    "exists": f"{OPEN}t",
    "hidden": f"{HIDDEN}t",
    "missing": f"{OPEN}missing",
    "internal": "__consumer_offsets",
}
GROUPS = {"exists": f"{OPEN}g", "hidden": f"{HIDDEN}g", "missing": f"{OPEN}no-g"}
TRANSACTIONAL_IDS = {"exists": f"{OPEN}x", "hidden": f"{HIDDEN}x", "missing": f"{OPEN}no-x"}
MIXED = (*TOPICS.values(), f"{HIDDEN}missing")
BROKER, CONTROLLER = "broker", "controller"


@dataclass
class World:
    """What requests need to know of the cluster."""

    topic_ids: dict[str, bytes] = field(default_factory=dict)

    def id(self, topic: str) -> bytes:
        """The id of a topic; an id that no topic has when it does not exist."""
        return self.topic_ids.get(topic, ANOTHER_UNKNOWN_ID if topic.startswith(HIDDEN) else UNKNOWN_ID)


Builder = Callable[[World, str], Mapping[str, Any]]
"""(the cluster, ``fresh-N`` for names of this cell only) -> the fields of the request in all versions."""


@dataclass(frozen=True)
class Case:
    """One request, for all users and versions."""

    api: ApiKey
    state: str
    fields: Builder
    _: KW_ONLY
    versions: tuple[int, ...] = ()
    """Instead of the lowest and the highest that the node serves."""
    listeners: tuple[str, ...] = (BROKER, CONTROLLER)
    """The listeners that it may be sent to; those that do not serve the API are left out."""
    alone: bool = False
    """The cells change the same resource or verify the same producer: one user after another."""
    prepared_topics: tuple[str, ...] = ()
    """Prefixes: ``<prefix>fresh-N`` is created ahead."""
    prepared_groups: tuple[str, ...] = ()
    """Likewise, with an offset of ``open-t``."""
    prepared_shares: tuple[str, ...] = ()
    """Likewise, a share group without members, whose offset of ``open-t`` and ``hidden-t`` is 0."""
    harmful: tuple[str, ...] = ()
    """Users whose rights would let the request destroy what other cells need."""
    always_answered: bool = True
    """False: Apache Kafka leaves some of the requests without an answer, and so may the other node."""


@dataclass(frozen=True)
class Cell:
    """One request of one user, in one version, to one listener. ``number`` is in the names that only this cell uses."""

    case: Case
    listener: str
    version: int
    user: str
    number: int

    @property
    def fresh(self) -> str:
        return f"fresh-{self.number}"

    @property
    def row(self) -> tuple[str, str, int, str]:
        """All but the user."""
        return self.listener, self.case.api.name, self.version, self.case.state


LAST_IN_4_3 = {
    ApiKey.API_VERSIONS: 4,
    ApiKey.TXN_OFFSET_COMMIT: 5,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 0,
    ApiKey.STREAMS_GROUP_DESCRIBE: 0,
}
NEW_IN_4_4 = (ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, ApiKey.UNREGISTER_CONTROLLER)


def served(listener: str) -> dict[int, tuple[int, int]]:
    """The versions of each API that a node serves there, up to the last one of Apache Kafka 4.3, which the table is recorded
    with."""
    routes = BROKER_APIS if listener == BROKER else CONTROLLER_APIS
    ours = {key: route.api.versions for key, route in routes.items() if key not in NEW_IN_4_4}
    return {key: (low, min(high, LAST_IN_4_3.get(key, high))) for key, (low, high) in ours.items()}


def cells(cases: list[Case], users: list[str]) -> Iterator[Cell]:
    """All cells, in the order of the table of APIs."""
    order = {row.key: place for place, row in enumerate(API_TABLE)}
    number = 0
    for listener in (BROKER, CONTROLLER):
        known = served(listener)
        for case in sorted(cases, key=lambda each: order.get(each.api, 1000 + each.api)):
            if listener not in case.listeners or case.api not in known:
                continue
            low, high = known[case.api]
            for version in dict.fromkeys(case.versions or (low, high)):
                if not low <= version <= high:
                    continue
                for user in users:
                    number += 1
                    if user not in case.harmful:
                        yield Cell(case, listener, version, user, number)


def by_topic(
    api: ApiKey, fields: Callable[[World, str], Mapping[str, Any]], *, entries: str = "topics", **options: Any
) -> list[Case]:
    """A case for each state of a topic, and one that names all of them. ``fields``: the entry of a topic."""

    def whole(names: tuple[str, ...]) -> Builder:
        return lambda world, _: {entries: [fields(world, name) for name in names]}

    states = {state: (name,) for state, name in TOPICS.items()} | {"mixed": MIXED}
    return [Case(api, state, whole(names), **options) for state, names in states.items()]


def with_fields(cases: list[Case], **fields: Any) -> list[Case]:
    """The cases with the same other fields in each request."""

    def extended(builder: Builder) -> Builder:
        return lambda world, fresh: {**fields, **builder(world, fresh)}

    return [replace(each, fields=extended(each.fields)) for each in cases]


def by_name(api: ApiKey, names: Mapping[str, str], fields: Callable[[str], Mapping[str, Any]], **options: Any) -> list[Case]:
    """A case for each state of a resource."""

    def builder(name: str) -> Builder:
        return lambda world, fresh: fields(name)

    return [Case(api, state, builder(name), **options) for state, name in names.items()]


def plain(api: ApiKey, state: str, /, *, options: Mapping[str, Any] | None = None, **fields: Any) -> Case:
    """A case whose request is the same for all cells."""
    return Case(api, state, lambda world, fresh: fields, **(options or {}))
