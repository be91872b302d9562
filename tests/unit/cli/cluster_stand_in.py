"""Sessions that answer from a table: the requests of commands, and the answers."""

from __future__ import annotations

from typing import Any

from tests.unit.client.scripted import answered
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.refusal import CommandFailed
from tidelog.client.calls import Call, Node, VersionOf
from tidelog.model.errors import KafkaError
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tidelog.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tidelog.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tidelog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tidelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.protocol.structure import Message


class StandIn(AdminSession):
    """An admin session without a connection: ``answers`` by the type of the request, what was asked in ``asked``."""

    def __init__(self, answers: dict[type, Any], brokers: tuple[int, ...] = (0, 1, 2)) -> None:
        self.answers = answers
        self.asked: list[tuple[int | None, Message]] = []
        self.timeout_ms = 1000
        self.at: int | None = None
        self._brokers = {each: MetadataResponseBroker(node_id=each, host="h", port=each, rack=f"r{each}") for each in brokers}

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, call: Call[Any]) -> Any:
        try:
            return answered(call, self._step)
        except KafkaError as error:
            raise CommandFailed(str(error)) from error

    def _step(self, step: Any) -> Any:
        if isinstance(step, VersionOf):
            return self.version_of(step.api_key)
        return (self.connection(step.to.node_id) if isinstance(step.to, Node) else self).ask(step.request)

    def ask(self, request: Message) -> Any:
        self.asked.append((self.at, request))
        answer = self.answers[type(request)]
        return answer(request) if callable(answer) else answer

    def connection(self, broker_id: int) -> Any:
        other = StandIn(self.answers, tuple(self._brokers))
        other.asked, other.at = self.asked, broker_id
        return other

    def requests(self, kind: type) -> list[tuple[int | None, Any]]:
        """Where requests of a kind went (None: any broker), and the requests."""
        return [(at, request) for at, request in self.asked if isinstance(request, kind)]


class FakeCluster(StandIn):
    """A cluster that moves: reassignments arrive after ``slow`` looks at them, settings are kept, leaders are elected.

    ``replicas``: by (topic, partition), preferred leader first. ``down``: brokers that are registered and not there.
    """

    def __init__(
        self,
        replicas: dict[tuple[str, int], tuple[int, ...]],
        *,
        racks: dict[int, str | None] | None = None,
        down: tuple[int, ...] = (),
        size: int = 1000,
        slow: int = 1,
    ) -> None:
        self.replicas = dict(replicas)
        self.leaders = {
            partition: next((each for each in brokers if each not in down), -1) for partition, brokers in replicas.items()
        }
        self.racks = racks or {1: None, 2: None, 3: None}
        self.down = down
        self.size = size
        self.slow = slow
        self.moving: dict[tuple[str, int], tuple[tuple[int, ...], int]] = {}
        self.settings: dict[tuple[int, str], dict[str, str]] = {}
        self.refuse: dict[tuple[str, int], int] = {}
        self.looks = 0
        super().__init__(
            {
                MetadataRequest: self._metadata,
                DescribeClusterRequest: self._describe_cluster,
                ListPartitionReassignmentsRequest: self._list,
                AlterPartitionReassignmentsRequest: self._alter,
                DescribeLogDirsRequest: self._log_dirs,
                DescribeConfigsRequest: self._configs,
                IncrementalAlterConfigsRequest: self._set,
                ElectLeadersRequest: self._elect,
                DescribeQuorumRequest: self._quorum,
            },
        )
        self._brokers = {}

    def version_of(self, api_key: int) -> int:
        return 2

    def connection(self, broker_id: int) -> Any:
        assert broker_id not in self.down
        self.at = broker_id
        return self

    def forget_connections(self) -> None:
        pass

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = sorted({topic for topic, _ in self.replicas})
        asked = names if request.topics is None else [each.name for each in request.topics]
        topics = [
            MetadataResponseTopic(
                name=name,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index,
                        leader_id=self.leaders[name, index],
                        replica_nodes=list(brokers),
                        isr_nodes=[each for each in brokers if each not in self.down],
                    )
                    for (topic, index), brokers in sorted(self.replicas.items())
                    if topic == name
                ],
            )
            for name in asked
        ]
        brokers = [MetadataResponseBroker(node_id=each, rack=rack) for each, rack in self.racks.items() if each not in self.down]
        return MetadataResponse(brokers=brokers, topics=topics)

    def _describe_cluster(self, request: DescribeClusterRequest) -> DescribeClusterResponse:
        brokers = [
            DescribeClusterBroker(broker_id=each, rack=rack, is_fenced=each in self.down) for each, rack in self.racks.items()
        ]
        return DescribeClusterResponse(cluster_id="fake", controller_id=1, brokers=brokers)

    def _list(self, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        self.looks += 1
        topics = []
        for (topic, index), (after, left) in list(self.moving.items()):
            before = self.replicas[topic, index]
            if left <= 0:
                self.replicas[topic, index] = after
                del self.moving[topic, index]
                continue
            self.moving[topic, index] = after, left - 1
            part = OngoingPartitionReassignment(
                partition_index=index,
                replicas=[*after, *(each for each in before if each not in after)],
                adding_replicas=[each for each in after if each not in before],
                removing_replicas=[each for each in before if each not in after],
            )
            topics.append(OngoingTopicReassignment(name=topic, partitions=[part]))
        return ListPartitionReassignmentsResponse(topics=topics)

    def _alter(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        responses = []
        for topic in request.topics:
            for part in topic.partitions:
                partition = topic.name, part.partition_index
                code = self.refuse.get(partition, 0)
                if not code:
                    self.moving[partition] = tuple(part.replicas or ()), self.slow
                row = ReassignablePartitionResponse(partition_index=part.partition_index, error_code=code)
                responses.append(ReassignableTopicResponse(name=topic.name, partitions=[row]))
        return AlterPartitionReassignmentsResponse(responses=responses)

    def _log_dirs(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        topics = [
            DescribeLogDirsTopic(
                name=asked.topic,
                partitions=[
                    DescribeLogDirsPartition(partition_index=index, partition_size=self.size) for index in asked.partitions
                ],
            )
            for asked in request.topics or []
        ]
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/data", topics=topics)])

    def _configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        results = []
        for asked in request.resources:
            kept = self.settings.get((asked.resource_type, asked.resource_name), {})
            rows = [
                DescribeConfigsResourceResult(name=name, value=kept[name], config_source=2)
                for name in asked.configuration_keys or kept
                if name in kept
            ]
            results.append(DescribeConfigsResult(resource_name=asked.resource_name, configs=rows))
        return DescribeConfigsResponse(results=results)

    def _set(self, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        for each in request.resources:
            kept = self.settings.setdefault((each.resource_type, each.resource_name), {})
            for config in each.configs:
                kept.pop(config.name, None)
                if config.config_operation == 0:
                    kept[config.name] = config.value or ""
        return IncrementalAlterConfigsResponse(
            responses=[AlterConfigsResourceResponse(resource_name=each.resource_name) for each in request.resources]
        )

    def _elect(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        for topic in request.topic_partitions or []:
            for index in topic.partitions:
                self.leaders[topic.topic, index] = self.replicas[topic.topic, index][0]
        return ElectLeadersResponse()

    def _quorum(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        voters = [ReplicaState(replica_id=each, log_end_offset=10 if each not in self.down else 5) for each in self.racks]
        part = ResponsePartitionData(leader_id=1, high_watermark=10, current_voters=voters)
        return DescribeQuorumResponse(topics=[ResponseTopicData(partitions=[part])])

    def throttled(self) -> dict[tuple[int, str], dict[str, str]]:
        """The settings that are set."""
        return {resource: dict(kept) for resource, kept in self.settings.items() if kept}
