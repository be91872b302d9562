"""A member of a share group at the level of messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tests.unit.broker.apis.live import Talk
from tidelog.protocol.messages import share_acknowledge as acknowledging
from tidelog.protocol.messages import share_fetch as fetching
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tidelog.records.builder import RecordData, build_batch
from tidelog.testing import Broker

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
GROUP_RESOURCE = 32


def create(talk: Talk, name: str, partitions: int = 1) -> bytes:
    (created,) = talk.ask(CreateTopicsRequest(topics=[CreatableTopic(name, partitions, 1)], timeout_ms=10_000), 7).topics
    assert created.error_code == 0, created
    return bytes(created.topic_id)


def produce(talk: Talk, topic: str, count: int, partition: int = 0) -> None:
    batch = bytes(build_batch([RecordData(None, b"v%d" % index, int(time.time() * 1000)) for index in range(count)]))
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]
    (answered,) = talk.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data), 9).responses
    assert answered.partition_responses[0].error_code == 0


def configure(talk: Talk, group: str, **configs: str) -> None:
    changes = [AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value) for name, value in configs.items()]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=changes)
    (answered,) = talk.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answered.error_code == 0, answered


class Member:
    """One member with its connection, and the epoch of its share session."""

    def __init__(self, broker: Broker, group: str, member_id: str = MEMBER) -> None:
        self.talk = Talk(broker.port)
        self.group = group
        self.member_id = member_id
        self.epoch = 0

    def beat(self, epoch: int, topics: list[str] | None = None) -> Any:
        return self.talk.ask(ShareGroupHeartbeatRequest(self.group, self.member_id, epoch, None, topics), 1)

    def join(self, topic: str) -> None:
        """Joins and sends heartbeats until there is an assignment."""
        self.talk.find(self.group)
        epoch, topics = 0, [topic]
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            answer = self.beat(epoch, topics if epoch == 0 else None)
            assert answer.error_code == 0, answer
            epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return
            time.sleep(0.02)
        raise AssertionError("no assignment in 20 s")

    def fetch(
        self,
        topic_id: bytes,
        acks: Sequence[tuple[int, int, list[int]]] = (),
        *,
        partitions: Sequence[int] = (0,),
        epoch: int | None = None,
        version: int = 2,
        **fields: Any,
    ) -> Any:
        """The whole response. ``acks`` are about the first of ``partitions``."""
        batches = [fetching.AcknowledgementBatch(*each) for each in acks]
        parts = [fetching.FetchPartition(each, batches if each == partitions[0] else []) for each in partitions]
        values = {"max_wait_ms": 5_000, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, **fields}
        topics = [fetching.FetchTopic(topic_id, parts)] if partitions else []
        used = self.epoch if epoch is None else epoch
        request = fetching.ShareFetchRequest(self.group, self.member_id, used, topics=topics, **values)
        answer = self.talk.ask(request, version)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    def records(
        self, topic_id: bytes, acks: Sequence[tuple[int, int, list[int]]] = (), **fields: Any
    ) -> list[tuple[int, int, int]]:
        """The ranges acquired in partition 0, without an error."""
        answer = self.fetch(topic_id, acks, **fields)
        assert answer.error_code == 0, answer
        parts = [each for topic in answer.responses for each in topic.partitions if each.partition_index == 0]
        assert not any(each.error_code or each.acknowledge_error_code for each in parts), parts
        return [(one.first_offset, one.last_offset, one.delivery_count) for each in parts for one in each.acquired_records]

    def acknowledge(
        self, topic_id: bytes, acks: Sequence[tuple[int, int, list[int]]], *, epoch: int | None = None, renew: bool = False
    ) -> Any:
        batches = [acknowledging.AcknowledgementBatch(*each) for each in acks]
        topics = [acknowledging.AcknowledgeTopic(topic_id, [acknowledging.AcknowledgePartition(0, batches)])] if acks else []
        used = self.epoch if epoch is None else epoch
        answer = self.talk.ask(acknowledging.ShareAcknowledgeRequest(self.group, self.member_id, used, renew, topics), 2)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    def close(self) -> None:
        self.talk.close()
