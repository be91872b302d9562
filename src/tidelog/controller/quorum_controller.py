"""QuorumController: the decisions of the active controller, as a pure machine.

It holds one image of all records appended so far, committed or not, because each decision must see those before it. A handler
takes a request and returns records and the response; ``replay`` applies the records to the image as soon as they are in the log.
The runner (``quorum_member``) sends responses only when their records are committed. When an append fails, the runner drops this
object and builds another from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidelog.controller import (
    activation,
    alter_partition,
    automatic_elections,
    broker_lifecycle,
    broker_registration,
    controller_registration,
    dynamic_configs,
    producer_ids,
    replica_directories,
    topics,
)
from tidelog.controller.heartbeats import BrokerHeartbeats
from tidelog.controller.partition_index import PartitionIndex
from tidelog.controller.result import NO_QUOTA, ConfigRules, ControllerResult, ControllerSettings, Decision, KRaftVersion, Quota
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage, ControllerImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.ids import NO_BROKER
from tidelog.model.ports import Rng
from tidelog.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from tidelog.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
    from tidelog.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
    from tidelog.protocol.messages.alter_configs import AlterConfigsRequest
    from tidelog.protocol.messages.alter_partition import AlterPartitionRequest
    from tidelog.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
    from tidelog.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
    from tidelog.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
    from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
    from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest
    from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest
    from tidelog.protocol.messages.create_acls import CreateAclsRequest
    from tidelog.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
    from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest
    from tidelog.protocol.messages.create_topics import CreateTopicsRequest
    from tidelog.protocol.messages.delete_acls import DeleteAclsRequest
    from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest
    from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest
    from tidelog.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
    from tidelog.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
    from tidelog.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
    from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest
    from tidelog.protocol.messages.update_features import UpdateFeaturesRequest

Handler = Callable[[Any, int], ControllerResult]
"""A method of QuorumController: (request, now_ms) -> ControllerResult. It may raise KafkaError: the whole request fails."""


class QuorumController:
    """Requests in, records and responses out."""

    def __init__(
        self,
        image: ClusterImage,
        *,
        rng: Rng,
        rules: ConfigRules,
        settings: ControllerSettings,
        node_id: int = NO_BROKER,
    ) -> None:
        """``node_id`` is this node's; a new broker process with that id is always accepted (``heartbeats``)."""
        self.image = image
        self.next_offset = image.offset + 1
        """The offset of the next record; control records move it too, so the runner sets it."""
        self.kraft = KRaftVersion()
        """State for the next decision; the runner sets it."""
        self.partitions = PartitionIndex(image.topics)
        self.heartbeats = BrokerHeartbeats(image.brokers.values(), own_id=node_id, timeout_ms=settings.broker_session_timeout_ms)
        self._rng = rng
        self._rules = rules
        self._settings = settings
        self._loaded_offset = image.offset
        self._registered_at: dict[int, int] = {}
        """Offsets of the registration records that this controller wrote."""
        self._balance_due_ms: int | None = None
        self._unclean_due_ms: int | None = None
        self._token_sweep_due_ms: int | None = None

    def set_settings(self, settings: ControllerSettings) -> None:
        """Uses changed broker options for later decisions."""
        self._settings = settings
        self.heartbeats.timeout_ms = settings.broker_session_timeout_ms

    def replay(self, records: Sequence[MetadataRecord], last_offset: int, epoch: int, now_ms: int) -> ClusterDelta:
        """Applies appended records to the image and returns the delta. An atomic group must be complete."""
        delta = ClusterDelta(self.image)
        for record in records:
            delta.replay(record)
        assert not delta.transaction_open, "an atomic group without its end"
        self.image = delta.apply(last_offset, epoch, now_ms)
        self.next_offset = last_offset + 1
        self.partitions.apply(delta.topics)
        self._follow_brokers(delta, last_offset)
        self.heartbeats.appended(last_offset)
        return delta

    def _follow_brokers(self, delta: ClusterDelta, last_offset: int) -> None:
        """Updates the state kept beside the image."""
        for broker_id in delta.registrations.brokers.touched:
            before, broker = delta.base.brokers.get(broker_id), self.image.brokers.get(broker_id)
            if broker is None:
                self.heartbeats.end(broker_id)
                self._registered_at.pop(broker_id, None)
                continue
            if before is None or before.epoch != broker.epoch:
                self._registered_at[broker_id] = last_offset
            if broker.fenced:
                self.heartbeats.fenced(broker_id)
            elif broker.in_controlled_shutdown:
                self.heartbeats.shut_down_at(broker_id, last_offset)

    def advance(self, last_offset: int, epoch: int, now_ms: int) -> None:
        """The log advanced without metadata records (a leader change)."""
        self.image = replace(self.image, offset=last_offset, epoch=epoch, timestamp_ms=now_ms)
        self.next_offset = last_offset + 1

    @property
    def _decision(self) -> Decision:
        return Decision(
            self.image,
            self.next_offset,
            self._rng,
            self._rules,
            self._settings,
            self.partitions,
            self.heartbeats,
            self.kraft,
        )

    # activation

    def bootstrap(self, records: Sequence[MetadataRecord]) -> ControllerResult:
        """The first records of an empty log."""
        return ControllerResult.of(None, activation.bootstrap_records(records, self._settings.min_insync_replicas))

    def register_controller(self, controller: ControllerImage) -> ControllerResult:
        """Registers this process with its listeners and feature ranges."""
        return ControllerResult.of(None, activation.registration_records(self.image, controller))

    # time

    def tick(self, now_ms: int, steady_ms: int) -> ControllerResult:
        """Time-driven work: fences expired brokers, returns leadership to preferred replicas, elects leaders, removes expired
        delegation tokens. Called about every 100 ms.

        Each call does at most one thing. The response says whether there may be more to do: then append the records and call
        again at once. ``steady_ms`` is a monotonic clock.
        """
        self.heartbeats.advance(steady_ms)
        result = broker_lifecycle.fence_silent_broker(self._decision)
        if result.response or result.records:
            return result
        settings = self._settings
        if self._balance_due_ms is None or self._unclean_due_ms is None:
            self._balance_due_ms = steady_ms + settings.leader_imbalance_check_interval_ms
            self._unclean_due_ms = steady_ms + settings.unclean_leader_election_interval_ms
        if steady_ms >= self._balance_due_ms:
            result = (
                automatic_elections.balance_leaders(self._decision)
                if settings.auto_leader_rebalance_enable
                else ControllerResult(False)
            )
            if not result.response:
                self._balance_due_ms = steady_ms + settings.leader_imbalance_check_interval_ms
            if result.records:
                return result
        if steady_ms >= self._unclean_due_ms:
            result = automatic_elections.elect_unclean_leaders(self._decision)
            if not result.response:
                self._unclean_due_ms = steady_ms + settings.unclean_leader_election_interval_ms
            if result.response or result.records:
                return result
        return self._sweep_tokens(now_ms, steady_ms)

    def _sweep_tokens(self, now_ms: int, steady_ms: int) -> ControllerResult:
        rules = self._settings.tokens
        if rules is None:
            return ControllerResult(False)
        if self._token_sweep_due_ms is None:
            self._token_sweep_due_ms = steady_ms + rules.check_interval_ms
        if steady_ms < self._token_sweep_due_ms:
            return ControllerResult(False)
        from tidelog.controller import delegation_tokens  # Only a cluster with delegation tokens.

        result = delegation_tokens.remove_expired(self._decision, now_ms)
        if not result.response:
            self._token_sweep_due_ms = steady_ms + rules.check_interval_ms
        return result

    # requests

    def register_standby(self, request: ControllerRegistrationRequest, now_ms: int) -> ControllerResult:
        return controller_registration.register_controller(self._decision, request)

    def register_broker(self, request: BrokerRegistrationRequest, now_ms: int) -> ControllerResult:
        return broker_registration.register_broker(self._decision, request)

    def broker_heartbeat(self, request: BrokerHeartbeatRequest, now_ms: int) -> ControllerResult:
        return broker_lifecycle.broker_heartbeat(self._decision, request, self._registration_offset(request.broker_id))

    def _registration_offset(self, broker_id: int) -> int:
        """The offset up to which a broker must have read to know its own registration. For a registration written by another
        controller only an upper bound is known, the end of the log when this controller started; waiting for that is safe and
        short."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            return self._loaded_offset
        return self._registered_at.get(broker_id, self._loaded_offset if broker.fenced else broker.epoch)

    def alter_partition(self, request: AlterPartitionRequest, now_ms: int) -> ControllerResult:
        return alter_partition.alter_partition(self._decision, request)

    def unregister_broker(self, request: UnregisterBrokerRequest, now_ms: int) -> ControllerResult:
        return broker_lifecycle.unregister_broker(self._decision, request)

    def create_topics(self, request: CreateTopicsRequest, now_ms: int, quota: Quota = NO_QUOTA) -> ControllerResult:
        return topics.create_topics(self._decision, request, quota)

    def delete_topics(self, request: DeleteTopicsRequest, now_ms: int, quota: Quota = NO_QUOTA) -> ControllerResult:
        return topics.delete_topics(self._decision, request, quota)

    def create_partitions(self, request: CreatePartitionsRequest, now_ms: int, quota: Quota = NO_QUOTA) -> ControllerResult:
        from tidelog.controller import (
            create_partitions,
        )  # Only for requests of administrators.

        return create_partitions.create_partitions(self._decision, request, quota)

    def elect_leaders(self, request: ElectLeadersRequest, now_ms: int) -> ControllerResult:
        from tidelog.controller import elect_leaders

        return elect_leaders.elect_leaders(self._decision, request)

    def alter_partition_reassignments(self, request: AlterPartitionReassignmentsRequest, now_ms: int) -> ControllerResult:
        from tidelog.controller import reassignments

        return reassignments.alter_partition_reassignments(self._decision, request)

    def incremental_alter_configs(self, request: IncrementalAlterConfigsRequest, now_ms: int) -> ControllerResult:
        return dynamic_configs.incremental_alter_configs(self._decision, request)

    def alter_configs(self, request: AlterConfigsRequest, now_ms: int) -> ControllerResult:
        return dynamic_configs.alter_configs(self._decision, request)

    def alter_client_quotas(self, request: AlterClientQuotasRequest, now_ms: int) -> ControllerResult:
        from tidelog.controller import client_quotas

        return client_quotas.alter_client_quotas(self._decision, request)

    def alter_user_scram_credentials(self, request: AlterUserScramCredentialsRequest, now_ms: int) -> ControllerResult:
        from tidelog.controller import scram_credentials  # Only a cluster whose users have passwords.

        return scram_credentials.alter_user_scram_credentials(self._decision, request)

    def create_acls(self, request: CreateAclsRequest, now_ms: int) -> ControllerResult:
        from tidelog.controller import acls  # Only a cluster with an authorizer has ACLs.

        return acls.create_acls(self._decision, request)

    def delete_acls(self, request: DeleteAclsRequest, now_ms: int) -> ControllerResult:
        from tidelog.controller import acls

        return acls.delete_acls(self._decision, request)

    def create_delegation_token(
        self, request: CreateDelegationTokenRequest, now_ms: int, requester: KafkaPrincipal, owner: KafkaPrincipal
    ) -> ControllerResult:
        from tidelog.controller import delegation_tokens

        return delegation_tokens.create_token(self._decision, request, owner, requester, now_ms)

    def renew_delegation_token(
        self, request: RenewDelegationTokenRequest, now_ms: int, requester: KafkaPrincipal
    ) -> ControllerResult:
        from tidelog.controller import delegation_tokens

        return delegation_tokens.renew_token(self._decision, request, requester, now_ms)

    def expire_delegation_token(
        self, request: ExpireDelegationTokenRequest, now_ms: int, requester: KafkaPrincipal
    ) -> ControllerResult:
        from tidelog.controller import delegation_tokens

        return delegation_tokens.expire_token(self._decision, request, requester, now_ms)

    def allocate_producer_ids(self, request: AllocateProducerIdsRequest, now_ms: int) -> ControllerResult:
        return producer_ids.allocate_producer_ids(self._decision, request)

    def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest, now_ms: int) -> ControllerResult:
        return replica_directories.assign_replicas_to_dirs(self._decision, request)

    def update_features(self, request: UpdateFeaturesRequest, now_ms: int, version: int = 2) -> ControllerResult:
        from tidelog.controller import update_features

        return update_features.update_features(self._decision, request, version)
