"""A controller without a disk: its records are replayed as soon as it decided them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult, ControllerSettings
from tidelog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from tidelog.protocol.messages.create_topics import CreatableTopicConfigs
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord

CLUSTER = "5L6g3nShT-eMCtK--X86sw"


class Rules:
    """Option rules that a test can see through: ``bad`` is a value that is refused, ``list`` options are lists."""

    def problem(self, resource_type: int, resource_name: str, settings: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
        for name, value in settings.items():
            if value == "bad":
                code = ErrorCode.INVALID_REQUEST if resource_type == BROKER_RESOURCE else ErrorCode.INVALID_CONFIG
                return code, f"{name} is bad"
        return None

    def is_list(self, resource_type: int, name: str) -> bool:
        return name.startswith("list")

    def default(self, resource_type: int, name: str) -> str:
        return "d1,d2" if name == "list.with.default" else ""

    def topic_rows(self, overrides: Mapping[str, str], image: ClusterImage) -> list[CreatableTopicConfigs]:
        return [CreatableTopicConfigs(name=name, value=value, config_source=1) for name, value in overrides.items()]


class Cluster:
    """A controller, and what a broker would say to it."""

    def __init__(self, settings: ControllerSettings, metadata_version: int = 30) -> None:
        self.controller = QuorumController(
            ClusterImage(cluster_id=CLUSTER), rng=random.Random(1), rules=Rules(), settings=settings
        )
        self.records: list[Any] = []
        self.steady_ms = 0
        self._commit(self.controller.bootstrap([FeatureLevelRecord(name="metadata.version", feature_level=metadata_version)]))

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def _commit(self, result: ControllerResult) -> Any:
        self.records = list(result.records)
        if result.records:
            last_offset = self.controller.next_offset + len(result.records) - 1
            self.controller.replay(result.records, last_offset, 1, 0)
        return result.response

    def ask(self, handler: Callable[..., ControllerResult], request: Any, *more: Any) -> Any:
        """The response; ``records`` are those of this request."""
        return self._commit(handler(self.controller, request, 0, *more))

    def register(
        self, broker_id: int, *, directories: int = 1, rack: str | None = None, incarnation: int = 0, **more: Any
    ) -> int:
        """Registers a broker, fenced; its epoch."""
        request = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER,
            "incarnation_id": bytes([broker_id, incarnation]) * 8,
            "listeners": [Listener(name="PLAINTEXT", host="h", port=9092, security_protocol=0)],
            "features": [
                Feature(name="metadata.version", min_supported_version=7, max_supported_version=30),
                Feature(name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1),
                Feature(name="kraft.version", min_supported_version=0, max_supported_version=1),
            ],
            "rack": rack,
            "log_dirs": [bytes([broker_id, n, 0xD0, 0]) * 4 for n in range(directories)],
        }
        response = self.ask(QuorumController.register_broker, BrokerRegistrationRequest(**{**request, **more}))
        return int(response.broker_epoch)

    def heartbeat(self, broker_id: int, **more: Any) -> Any:
        broker = self.image.brokers[broker_id]
        request = {"broker_epoch": broker.epoch, "current_metadata_offset": self.image.offset, **more}
        return self.ask(QuorumController.broker_heartbeat, BrokerHeartbeatRequest(broker_id=broker_id, **request))

    def tick(self, ms: int = 0) -> list[Any]:
        """Time passes; the records of everything it brings."""
        self.steady_ms += ms
        written: list[Any] = []
        more = True
        while more:
            more = self._commit(self.controller.tick(0, self.steady_ms))
            written += self.records
        self.records = written
        return written

    def silence(self, broker_id: int) -> list[Any]:
        """The broker is not heard of for longer than a session, the others are; what that comes to."""
        written: list[Any] = []
        for _ in range(5):
            for other in self.image.brokers.values():
                if other.id != broker_id and not other.fenced:
                    self.heartbeat(other.id, current_metadata_offset=self.image.offset)
            written += self.tick(3_000)
        self.records = written
        return written

    def add_brokers(self, *broker_ids: int, racks: Mapping[int, str] | None = None) -> None:
        """Registered and unfenced."""
        for broker_id in broker_ids:
            self.register(broker_id, rack=(racks or {}).get(broker_id))
            self.heartbeat(broker_id)

    def leaders(self, topic: str) -> list[tuple[int, int]]:
        """(leader, leader epoch) of each partition."""
        return [(each.leader, each.leader_epoch) for each in self.image.topics.by_name[topic].partitions]

    def settings_of(self, topic: str) -> Mapping[str, str]:
        return self.image.configs.get((TOPIC_RESOURCE, topic), {})


@pytest.fixture
def make_cluster() -> Callable[..., Cluster]:
    def make(*broker_ids: int, metadata_version: int = 30, racks: Mapping[int, str] | None = None, **settings: Any) -> Cluster:
        cluster = Cluster(ControllerSettings(**settings), metadata_version)
        cluster.add_brokers(*broker_ids, racks=racks)
        return cluster

    return make


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    """One broker, number 1, in service."""
    return make_cluster(1)
