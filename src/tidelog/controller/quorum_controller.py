"""QuorumController: what the active controller decides, as a pure machine.

It holds one image: all records appended so far, committed or not, because each decision must see those before it. A handler
takes a request and returns the records it wants and the response; ``replay`` makes them part of the image as soon as they are
in the log. Responses are given out by the runner (``metadata_node``) only when their records are committed. When an append
fails, the runner drops this object and makes another from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tidelog.controller import (
    activation,
    brokers,
    configs,
    controllers,
    directories,
    elections,
    features,
    partition_counts,
    producer_ids,
    reassignments,
    topics,
)
from tidelog.controller.result import ConfigRules, ControllerResult, ControllerSettings, Decision
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage, ControllerImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.ports import Rng
from tidelog.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tidelog.protocol.messages.alter_configs import AlterConfigsRequest
from tidelog.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from tidelog.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest
from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest
from tidelog.protocol.messages.create_topics import CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest
from tidelog.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tidelog.protocol.messages.update_features import UpdateFeaturesRequest

Handler = Callable[[Any, int], ControllerResult]
"""A method of QuorumController: (request, now_ms) -> ControllerResult. It may raise KafkaError: the whole request fails."""


class QuorumController:
    """Requests in, records and responses out."""

    def __init__(self, image: ClusterImage, *, rng: Rng, rules: ConfigRules, settings: ControllerSettings) -> None:
        self.image = image
        self.next_offset = image.offset + 1
        """Where the next record goes; control records move it too, so the runner sets it."""
        self._rng = rng
        self._rules = rules
        self._settings = settings

    def set_settings(self, settings: ControllerSettings) -> None:
        """The broker's options changed; later decisions follow the new ones."""
        self._settings = settings

    def replay(self, records: Sequence[MetadataRecord], last_offset: int, epoch: int, now_ms: int) -> ClusterDelta:
        """Makes appended records part of the image; the delta that did it. An atomic group has to come whole."""
        delta = ClusterDelta(self.image)
        for record in records:
            delta.replay(record)
        assert not delta.transaction_open, "an atomic group without its end"
        self.image = delta.apply(last_offset, epoch, now_ms)
        self.next_offset = last_offset + 1
        return delta

    def advance(self, last_offset: int, epoch: int, now_ms: int) -> None:
        """The log moved on without metadata records (a leader change)."""
        self.image = replace(self.image, offset=last_offset, epoch=epoch, timestamp_ms=now_ms)
        self.next_offset = last_offset + 1

    @property
    def _decision(self) -> Decision:
        return Decision(self.image, self.next_offset, self._rng, self._rules, self._settings)

    # activation

    def bootstrap(self, records: Sequence[MetadataRecord]) -> ControllerResult:
        """The first records of an empty log."""
        return ControllerResult.of(None, activation.bootstrap_records(records))

    def register_controller(self, controller: ControllerImage) -> ControllerResult:
        """This process, with its listeners and feature ranges."""
        return ControllerResult.of(None, activation.registration_records(self.image, controller))

    # requests

    def register_standby(self, request: ControllerRegistrationRequest, now_ms: int) -> ControllerResult:
        return controllers.register_controller(self._decision, request)

    def register_broker(self, request: BrokerRegistrationRequest, now_ms: int) -> ControllerResult:
        return brokers.register_broker(self._decision, request)

    def broker_heartbeat(self, request: BrokerHeartbeatRequest, now_ms: int) -> ControllerResult:
        return brokers.broker_heartbeat(self._decision, request)

    def unregister_broker(self, request: UnregisterBrokerRequest, now_ms: int) -> ControllerResult:
        return brokers.unregister_broker(self._decision, request)

    def create_topics(self, request: CreateTopicsRequest, now_ms: int) -> ControllerResult:
        return topics.create_topics(self._decision, request)

    def delete_topics(self, request: DeleteTopicsRequest, now_ms: int) -> ControllerResult:
        return topics.delete_topics(self._decision, request)

    def create_partitions(self, request: CreatePartitionsRequest, now_ms: int) -> ControllerResult:
        return partition_counts.create_partitions(self._decision, request)

    def elect_leaders(self, request: ElectLeadersRequest, now_ms: int) -> ControllerResult:
        return elections.elect_leaders(self._decision, request)

    def alter_partition_reassignments(self, request: AlterPartitionReassignmentsRequest, now_ms: int) -> ControllerResult:
        return reassignments.alter_partition_reassignments(self._decision, request)

    def incremental_alter_configs(self, request: IncrementalAlterConfigsRequest, now_ms: int) -> ControllerResult:
        return configs.incremental_alter_configs(self._decision, request)

    def alter_configs(self, request: AlterConfigsRequest, now_ms: int) -> ControllerResult:
        return configs.alter_configs(self._decision, request)

    def allocate_producer_ids(self, request: AllocateProducerIdsRequest, now_ms: int) -> ControllerResult:
        return producer_ids.allocate_producer_ids(self._decision, request)

    def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest, now_ms: int) -> ControllerResult:
        return directories.assign_replicas_to_dirs(self._decision, request)

    def update_features(self, request: UpdateFeaturesRequest, now_ms: int, version: int = 2) -> ControllerResult:
        return features.update_features(self._decision, request, version)
