"""Every row of the API table asks for permission: a client that may do nothing is refused, and its request reaches no owner."""

from __future__ import annotations

import itertools
import random
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.apis.guarded import errors
from tests.unit.broker.node_world import NOW_MS, NodeWorld, Ready, run
from tests.unit.protocol.random_messages import Maker, message_named
from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE
from tidelog.broker.api import NOTHING, Route
from tidelog.broker.authorization import DENIED
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.node import ControllerSide
from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, decode_response_header, encode_request, response_header_is_flexible
from tidelog.protocol.messages.delete_topics import DeleteTopicState
from tidelog.protocol.structure import Structure
from tidelog.replication.fetch import Fetch
from tidelog.replication.fetch_sessions import FetchSessionCache
from tidelog.replication.hosted_partitions import HostedPartitions

OPEN = {
    ApiKey.API_VERSIONS: "a client asks it before it says who it is",
    ApiKey.SASL_HANDSHAKE: "a client says who it is",
    ApiKey.SASL_AUTHENTICATE: "a client says who it is",
    ApiKey.RENEW_DELEGATION_TOKEN: "the owner and the renewers of a token may, by its secret, and no other client",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "the owner and the renewers of a token may, by its secret, and no other client",
}
"""The APIs that need nothing, and why."""
NEWER_GROUPS = ("group.version", "share.version", "streams.version")
LEFT_OUT = {
    ApiKey.METADATA: "without names, topics that the client may not describe are left out",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "without names, topics that the client may not describe are left out",
    ApiKey.LIST_GROUPS: "groups that the client may not describe are left out",
    ApiKey.LIST_TRANSACTIONS: "transactional ids that the client may not describe are left out",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "tokens that the client may not describe are left out",
    ApiKey.DESCRIBE_CLUSTER: "clients may know the brokers; only the operations need a permission",
}
"""The APIs of brokers that also answer without an error, and what their answers leave out."""
ASKS_FIRST = {ApiKey.LIST_GROUPS: "groups", ApiKey.LIST_TRANSACTIONS: "transactions"}
"""The APIs that look at an owner's state and leave out what the client may not describe, and the owner."""
DECIDED_BY_THE_CONTROLLER = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
}
"""The APIs that ask when the controller decides, with its image: it is reached and changes nothing."""
SENSELESS = {
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.MISMATCHED_ENDPOINT_TYPE,
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
}
"""Errors of requests that name nothing that a permission could be for."""
REFUSED = set(DENIED.values())
OWN_BEFORE = {ApiKey.CREATE_DELEGATION_TOKEN: 3}
"""The APIs that in earlier versions are about the client itself, which needs no permission for that."""
TOPIC = "t"
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT",
    "delegation.token.secret.key": "key",
}


class Reached(Exception):
    """A handler went on to an owner."""


class Owner:
    """A coordinator, a log or a controller; ``reached`` lists what a handler wanted of any of them."""

    def __init__(self, name: str, reached: list[str], **harmless: Any) -> None:
        self.__dict__.update(harmless, _name=name, _reached=reached)

    def __getattr__(self, attribute: str) -> Any:
        self._reached.append(f"{self._name}.{attribute}")
        raise Reached


class Guarded:
    """A broker and a controller with a topic, whose client may do nothing."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        world = NodeWorld(SETTINGS)
        self.topic_id = world.create(TOPIC)
        self.world = world
        broker = world.broker
        broker.image = replace(broker.image, features={**broker.image.features, **dict.fromkeys(NEWER_GROUPS, 1)})
        self.broker = broker
        broker.access = Allowing()
        broker.controller = self._owner("controller", is_here=True, submit=self._submit)
        for name in ("groups", "transactions", "others", "producer_ids"):
            setattr(broker, name, self._owner(name))
        hosted = HostedPartitions()
        hosted.follow(broker.image)
        broker.replicas = self._owner(
            "replicas",
            sessions=FetchSessionCache(random.Random(1)),
            fetch=lambda context, **options: Fetch(SimpleNamespace(hosted=hosted), context, **options),  # type: ignore[arg-type]
            by_name=hosted.by_name,
            by_id=hosted.by_id,
        )
        self.controller = ControllerSide(
            node_id=1,
            cluster_id="c",
            config=world.config,
            images=broker,
            controller=broker.controller,
            quorum=self._owner("quorum"),
            runtime=world.runtime,
            rng=broker.rng,
            apis=CONTROLLER_APIS,
            access=Allowing(),
        )

    def _submit(self, handler: Any, request: Any, version: int | None = None, asker: Any = None) -> Any:
        self.reached.append("controller.submit")
        result = handler(self.world.controller.machine, request, NOW_MS)
        if result.records:
            self.reached.append("controller's log")
        return Ready(result.response)

    def _owner(self, name: str, **harmless: Any) -> Any:
        return Owner(name, self.reached, **harmless)

    def answer(self, route: Route, request: Any, version: int) -> Any:
        """Decoded; CLOSE_CONNECTION or NO_RESPONSE instead where there is none."""
        apis, node = (BROKER_APIS, self.broker) if route is BROKER_APIS.get(route.api.key) else (CONTROLLER_APIS, self.controller)
        data = encode_request(RequestHeader(request.API_KEY, version, 5, "me"), request)[4:]
        outgoing: Any = Dispatcher(node, apis).handle(self.world.session(), memoryview(bytearray(data)))
        if isinstance(outgoing, Coroutine):
            outgoing = run(outgoing)
        if outgoing in (CLOSE_CONNECTION, NO_RESPONSE):
            return outgoing
        body = b"".join(bytes(part) for part in outgoing)[4:]
        _, position = decode_response_header(body, response_header_is_flexible(request.API_KEY, version))
        return registry.response_class(request.API_KEY).decode(body[position:], version)

    def requests(self, route: Route, version: int) -> list[Any]:
        """Random ones about the topic that there is."""
        message = message_named(registry.request_class(route.api.key).NAME)
        made = [Maker(message, version, random.Random(seed), tame=True).make() for seed in range(8)]
        for request in made:
            self._about_the_topic(request, itertools.count())
        return made

    def _about_the_topic(self, made: Structure, names: Iterator[int]) -> None:
        """Each topic has another name; the first exists. One that may be named by its id as well is named in one way."""
        for name in made.__slots__:
            value = getattr(made, name)
            if name in ("name", "topic", "topic_name", "resource_name") and isinstance(value, str):
                setattr(made, name, TOPIC + "x" * next(names))
            elif name == "topic_id" and isinstance(value, bytes):
                setattr(made, name, ZERO_UUID if isinstance(made, DeleteTopicState) and made.name is not None else self.topic_id)
            elif name == "resource_type":
                setattr(made, name, 2)
            elif name == "owner_principal_name":
                setattr(made, name, "other")
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, Structure):
                    self._about_the_topic(each, names)


def routes() -> Iterator[Any]:
    for kind, apis in (("broker", BROKER_APIS), ("controller", CONTROLLER_APIS)):
        for key, route in apis.items():
            yield pytest.param(route, id=f"{kind}-{ApiKey(key).name}")


def test_few_apis_need_nothing() -> None:
    found = [*BROKER_APIS.values(), *CONTROLLER_APIS.values()]
    assert {route.api.key for route in found if route.needs == NOTHING} == set(OPEN)
    assert all(route.needs.permissions for route in found if route.api.key not in OPEN)


@pytest.mark.parametrize("route", list(routes()))
def test_a_client_that_may_do_nothing_is_refused_and_reaches_no_owner(route: Route) -> None:
    if route.api.key in OPEN:
        return
    for version in range(OWN_BEFORE.get(route.api.key, route.api.versions[0]), route.api.versions[1] + 1):
        guarded = Guarded()
        found: set[int] = set()
        for request in guarded.requests(route, version):
            answer = guarded.answer(route, request, version)
            if answer is CLOSE_CONNECTION:
                assert getattr(request, "acks", 1) == 0
                continue
            found.update(errors(answer))
        if route.api.key in ASKS_FIRST:
            assert {each.split(".")[0] for each in guarded.reached} == {ASKS_FIRST[route.api.key]}
            continue
        assert found <= REFUSED | SENSELESS, f"version {version}"
        assert found & REFUSED or (route.api.key in LEFT_OUT and route in BROKER_APIS.values()), f"version {version}"
        assert set(guarded.reached) == ({"controller.submit"} if route.api.key in DECIDED_BY_THE_CONTROLLER else set())
