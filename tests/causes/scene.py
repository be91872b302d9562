"""A topic and a group for one scenario, and what ``tidelog why`` says about the group."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Message, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.causes.sampling import NOT_SAMPLED, Sampler
from tests.node.cluster import Cluster
from tidelog.cli.admin_session import AdminSession
from tidelog.client.admin.configs import alter
from tidelog.client.admin.results import ResourceType as ConfigOf
from tidelog.client.calls import Call
from tidelog.console.collecting import sample
from tidelog.console.group_facts import Sample
from tidelog.model.errors import KafkaError as RefusedByKafka

WAIT_S = 60
FOUND, NOTHING = 3, 0
"""Exit codes of ``tidelog why``: a cause, and none."""


class Scene:
    """Closed with its clients by ``close``."""

    def __init__(
        self, servers: str, name: str, endpoints: Sequence[str] = (), cluster: Cluster | None = None, directory: Path = Path()
    ) -> None:
        self.servers = servers
        self.endpoints = endpoints
        """Pages of the nodes, for a diagnosis that needs them."""
        self._cluster = cluster
        self.directory = directory
        """With the data of the node in ``data``."""
        self.guarded: str | None = None
        """Where applications log in, of a stage that asks for it."""
        self.burrow = NOT_SAMPLED
        """What Burrow's rules say of the same time."""
        self.registry: str | None = None
        """The address of a schema registry."""
        self.topic = f"{name}-topic"
        self.group = f"{name}-group"
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._consumers: list[Consumer] = []
        self._workers: list[ShareConsumer] = []
        self._producer: Producer | None = None

    def close(self) -> None:
        for member in (*self._consumers, *self._workers):
            member.close()
        self._consumers.clear()
        self._workers.clear()

    @property
    def cluster(self) -> Cluster:
        """Of scenarios on several nodes."""
        assert self._cluster is not None
        return self._cluster

    def create(self, partitions: int = 1, on: Sequence[int] = (), **settings: str) -> None:
        """``on``: the brokers with the replicas of the one partition."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        where: dict[str, Any] = {"replica_assignment": [list(on)]} if on else {"replication_factor": 1}
        self.admin.create_topics([NewTopic(self.topic, partitions, config=config, **where)])[self.topic].result(WAIT_S)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads the partition."""
        return int(self.admin.list_topics(timeout=WAIT_S).topics[topic].partitions[partition].leader)

    def coordinator(self) -> int:
        """The broker that coordinates the group."""
        with AdminSession(self.servers) as session:
            return session.coordinator(self.group)[0]

    def produce(self, count: int) -> None:
        if self._producer is None:
            self._producer = Producer({"bootstrap.servers": self.servers})
        for number in range(count):
            self._producer.produce(self.topic, str(number), partition=0)
        assert self._producer.flush(WAIT_S) == 0

    def write(self, *values: bytes, timestamp_ms: int = 0, **settings: Any) -> None:
        """These values, each in a batch of its own; ``timestamp_ms`` 0: now."""
        own = {key.replace("_", "."): value for key, value in settings.items()}
        producer = Producer({"bootstrap.servers": self.servers, **own})
        for value in values:
            producer.produce(self.topic, value, partition=0, timestamp=timestamp_ms)
            assert producer.flush(WAIT_S) == 0

    def refuses(self) -> bool:
        """Whether a write with acks=all is refused because too few replicas are in sync."""
        errors: list[KafkaError] = []
        producer = Producer({"bootstrap.servers": self.servers, "acks": "all", "message.timeout.ms": 2000, "retries": 0})
        producer.produce(self.topic, b"refused", partition=0, on_delivery=lambda error, _: errors.append(error))
        producer.flush(WAIT_S)
        return any(each is not None and each.code() == KafkaError.NOT_ENOUGH_REPLICAS for each in errors)

    def transaction(self, transactional_id: str) -> Producer:
        """A producer whose transaction has begun."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": transactional_id})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        return producer

    def consumer(self, *topics: str, **settings: Any) -> Consumer:
        """A member of the group, from the topic's beginning, that commits when it should."""
        own = {key.replace("_", "."): value for key, value in settings.items()}
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.group,
                "client.id": "app",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **own,
            }
        )
        self._consumers.append(consumer)
        if topics:
            consumer.subscribe(list(topics))
        return consumer

    def stop(self, consumer: Consumer) -> None:
        """The member leaves."""
        self._consumers.remove(consumer)
        consumer.close()

    def reader(self, count: int, **settings: Any) -> Consumer:
        """A member that has read and committed ``count`` records."""
        consumer = self.consumer(self.topic, **settings)
        assert len(consumer.consume(count, WAIT_S)) == count
        self.commit(consumer, count)
        return consumer

    def commit(self, consumer: Consumer, offset: int) -> None:
        (done,) = consumer.commit(offsets=[TopicPartition(self.topic, 0, offset)], asynchronous=False)
        assert done.error is None

    def worker(self, topic: str | None = None, **settings: Any) -> ShareConsumer:
        """A member of the share group that acknowledges each record itself."""
        own = {key.replace("_", "."): value for key, value in settings.items()}
        worker = ShareConsumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.group,
                "client.id": "app",
                "share.acknowledgement.mode": "explicit",
                "log_level": 3,
                **own,
            }
        )
        self._workers.append(worker)
        worker.subscribe([topic or self.topic])
        return worker

    def dismiss(self, worker: ShareConsumer) -> None:
        """The worker leaves."""
        self._workers.remove(worker)
        worker.close()

    def got(self, worker: ShareConsumer) -> list[Message]:
        """The next records that the worker is given. TimeoutError: none within ``WAIT_S``."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if messages := list(worker.poll(timeout=1)):
                return messages
        raise TimeoutError(f"{self.group}: no record came")

    def share_settings(self, **settings: str) -> None:
        """Settings of the share group, from the earliest record on."""
        wanted = {"share.auto.offset.reset": "earliest", **{f"share.{key.replace('_', '.')}": settings[key] for key in settings}}
        with AdminSession(self.servers) as session:
            session.run(alter(ConfigOf.GROUP, self.group, wanted))

    def store(self, offset: int) -> None:
        """An offset of a group without members."""
        wanted = ConsumerGroupTopicPartitions(self.group, [TopicPartition(self.topic, 0, offset)])
        (future,) = self.admin.alter_consumer_group_offsets([wanted]).values()
        future.result(WAIT_S)

    def configure(self, key: str, value: str) -> None:
        """A setting of the topic."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self.topic, incremental_configs=[entry])
        (future,) = self.admin.incremental_alter_configs([resource]).values()
        future.result(WAIT_S)

    def remove_before(self, offset: int) -> None:
        (future,) = self.admin.delete_records([TopicPartition(self.topic, 0, offset)]).values()
        future.result(WAIT_S)

    def until(self, reached: Callable[[Sample], bool], *polled: Consumer | ShareConsumer) -> None:
        """Polls these members until the group looks so. TimeoutError: it does not within ``WAIT_S``."""
        deadline = time.monotonic() + WAIT_S
        with AdminSession(self.servers) as session:
            while time.monotonic() < deadline:
                for consumer in polled:
                    consumer.poll(0.1)
                found = session.run(_seen(self.group))
                if found is not None and reached(found):
                    return
        raise TimeoutError(f"{self.group} did not reach the state that the scenario needs")

    def why(self, meanwhile: Callable[[], object] = lambda: None, seconds: int = 3) -> dict[str, Any]:
        """The answer of the command in a process of its own; ``meanwhile`` runs again and again while it looks."""
        command = [sys.executable, "-m", "tidelog.cli.main", "why", self.group, "--bootstrap-server", self.servers]
        command += [] if self.registry is None else ["--schema-registry", self.registry]
        command += [word for endpoint in self.endpoints for word in ("--endpoint", endpoint)]
        sampler = Sampler(self.servers, self.group)
        with subprocess.Popen(
            [*command, "--seconds", str(seconds), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                while process.poll() is None:
                    meanwhile()
                    sampler.sample()
                    try:
                        process.wait(0.05)
                    except subprocess.TimeoutExpired:
                        continue
                output, errors = process.communicate()
            finally:
                process.kill()
        assert process.returncode in (FOUND, NOTHING), errors
        found: dict[str, Any] = json.loads(output)
        self.burrow = sampler.status()
        assert (process.returncode == FOUND) == (found["primary"] is not None)
        return found


def _seen(group: str) -> Call[Sample | None]:
    try:
        return (yield from sample(group, 0))
    except RefusedByKafka:
        return None  # not there yet
