"""A broker's shared parts without a network or a disk: a real controller decides, and what it decides is committed at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Generator
from dataclasses import replace
from typing import Any, TypeVar

from tidelog.broker.api import NOTHING, Api, Handler, Route
from tidelog.broker.apis.topics.metadata_bytes import Answers
from tidelog.broker.node import Broker, BrokerContext
from tidelog.broker.ports import Asker
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.request import Context, RequestContext, Session
from tidelog.broker.table import BROKER_APIS
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.config_validation import OptionRules
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult, ControllerSettings
from tidelog.metadata.image import BrokerImage, ClusterImage, Endpoint
from tidelog.model.errors import KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

NOW_MS = 1_700_000_000_000
DIRECTORY = Uuid(b"D" * 16)
T = TypeVar("T")


def served(key: ApiKey, versions: tuple[int, int], handler: Handler, **row: Any) -> Route:
    """A row of a test's own table, as a node serves it."""
    read = row.pop("read", None)
    return Route(Api(key=key, versions=versions, needs=NOTHING, **row), handler, read, NOTHING)


def refused(ctx: Context, key: ApiKey, request: Any, error: KafkaError) -> Any:
    """The answer of a broker's row to a request whose handler raised ``error``."""
    ctx.api_key = key
    return BROKER_APIS[key].api.refuse(ctx, request, error)


class Ready:
    """What is awaited and there already."""

    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self.value = value
        self.error = error

    def __await__(self) -> Generator[Any, Any, Any]:
        if self.error is not None:
            raise self.error
        return self.value
        yield


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("it waits for something")


class FakeRuntime:
    """Time stands still; what is spawned waits until the test lets it go on."""

    def __init__(self) -> None:
        self.spawned: list[Coroutine[Any, Any, Any]] = []

    def now_ms(self) -> int:
        return NOW_MS

    def even_ms(self) -> int:
        return self.now_ms()

    def run_blocking(self, job: Callable[[], T]) -> Ready:
        return Ready(job())

    def wait(self, parked: object) -> Ready:
        raise AssertionError("nothing here parks")

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> None:
        self.spawned.append(coroutine)

    def run_spawned(self) -> None:
        while self.spawned:
            run(self.spawned.pop(0))


class InstantController:
    """The real controller, its records committed as they are made."""

    kraft_version = 0

    def __init__(self, world: NodeWorld, image: ClusterImage) -> None:
        self._world = world
        self.refuses: KafkaError | None = None
        self.elsewhere: Callable[[int, Any, Asker], Any] | None = None
        """The active controller in another process: answers (version, request, asker), or raises."""
        self.awaited: list[Callable[[ClusterImage], bool]] = []
        """What answers of ``elsewhere`` wait for."""
        self.settings = ControllerSettings()
        """Its own; the broker's are in ``NodeWorld.config``."""
        self.take_over(image)

    def take_over(self, image: ClusterImage) -> None:
        """A controller of this image."""
        rules = OptionRules(self._world.config)
        self.machine = QuorumController(image, rng=random.Random(1), rules=rules, settings=self.settings, node_id=1)

    @property
    def is_here(self) -> bool:
        return self.elsewhere is None

    async def pass_on(self, version: int, request: Any, asker: Asker) -> Any:
        assert self.elsewhere is not None, "the controller is here"
        return self.elsewhere(version, request, asker)

    async def until_applied(self, what: Callable[[ClusterImage], bool]) -> None:
        self.awaited.append(what)

    def submit(
        self,
        handler: Callable[[QuorumController, Any, int], ControllerResult],
        request: Any,
        version: int | None = None,
        asker: Asker | None = None,
    ) -> Ready:
        try:
            if self.refuses is not None:
                raise self.refuses
            result = handler(self.machine, request, NOW_MS)
        except KafkaError as error:
            return Ready(error=error)
        if result.records:
            self.machine.replay(result.records, self.machine.next_offset + len(result.records) - 1, 1, NOW_MS)
            self._world.broker.image = self.machine.image
        return Ready(result.response)


class NoShards:
    """No group is coordinated here."""

    def doubts(self, key: str) -> bool:
        return False


class NodeWorld:
    """One broker, number 1, with the listeners EXTERNAL and INTERNAL."""

    def __init__(self, settings: dict[str, str] | None = None, apis: dict[int, Route] | None = None) -> None:
        self.config = BrokerConfig.from_properties(settings or {})
        endpoints = {
            name: Endpoint(name, host, port) for name, host, port in (("EXTERNAL", "out", 9092), ("INTERNAL", "in", 9093))
        }
        registered = BrokerImage(
            id=1,
            epoch=3,
            incarnation_id=Uuid(b"I" * 16),
            endpoints=endpoints,
            features={},
            rack="r1",
            fenced=False,
            in_controlled_shutdown=False,
            directories=(DIRECTORY,),
        )
        image = ClusterImage(
            cluster_id="test-cluster", offset=3, epoch=1, features={"metadata.version": 30}, brokers={1: registered}
        )
        self.runtime = FakeRuntime()
        self.controller = InstantController(self, image)
        self.broker = Broker(
            node_id=1,
            cluster_id="test-cluster",
            config=self.config,
            image=image,
            replicas=None,  # type: ignore[arg-type]
            controller=self.controller,
            runtime=self.runtime,
            rng=random.Random(2),
            producer_ids=ProducerIds(),
            apis=BROKER_APIS if apis is None else apis,
            metadata_answers=Answers(),
            groups=NoShards(),  # type: ignore[arg-type]
            transactions=NoShards(),  # type: ignore[arg-type]
            shares=NoShards(),  # type: ignore[arg-type]
        )

    def session(self, listener: str = "EXTERNAL") -> Session:
        """A client that is connected."""
        return Session(listener, "10.0.0.1")

    def context(self, version: int = 0, listener: str = "EXTERNAL") -> BrokerContext:
        """A request of such a client."""
        return RequestContext(self.broker, self.session(listener), -1, version, 42, "tester")

    def create(self, name: str, partitions: int = 1) -> bytes:
        """A topic; its id."""
        request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)])
        result = run(_submitted(self.controller, request)).topics[0]
        assert result.error_code == 0, result.error_message
        return self.broker.image.topics.by_name[name].id

    def add_broker(self, node_id: int) -> None:
        """Another broker like the first, in service; the controller and this node both know it."""
        image = self.broker.image
        directory = Uuid(bytes([node_id]) * 16)
        other = image.brokers[1]._replace(id=node_id, directories=(directory,))
        self.broker.image = replace(image, brokers={**image.brokers, node_id: other})
        self.controller.take_over(self.broker.image)

    def change_broker(self, **changes: Any) -> None:
        """Another image in which broker 1 is different."""
        image = self.broker.image
        self.broker.image = replace(image, brokers={**image.brokers, 1: image.brokers[1]._replace(**changes)})


async def _submitted(controller: InstantController, request: CreateTopicsRequest) -> Any:
    return await controller.submit(QuorumController.create_topics, request)
