"""Brokers come, are fenced and unfenced, shut down and go."""

from __future__ import annotations

from tidelog.controller.directories import offline_directories
from tidelog.controller.partitions import leader_changes
from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import BrokerImage, Endpoint
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.snapshot import register_broker_record
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from tidelog.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tidelog.protocol.messages.unregister_broker_record import UnregisterBrokerRecord

FENCE = 1
UNFENCE = -1
"""Values of BrokerRegistrationChangeRecord.fenced; 0 leaves it as it is."""


def register_broker(decision: Decision, request: BrokerRegistrationRequest) -> ControllerResult:
    """A broker process starts: it is registered fenced, and its epoch is the offset of the record.

    KafkaError INCONSISTENT_CLUSTER_ID for a broker of another cluster, UNSUPPORTED_VERSION when a finalized feature level lies
    outside what it supports. A process that died without fencing itself still leads in the image: those leaderships end here,
    so that whatever it leads next has a new leader epoch.
    """
    image = decision.image
    if request.cluster_id != image.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"broker {request.broker_id} expects cluster id {request.cluster_id}, and this cluster is {image.cluster_id}",
        )
    ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    _check_features(decision, request.broker_id, ranges)
    previous = image.brokers.get(request.broker_id)
    same_process = previous is not None and previous.incarnation_id == request.incarnation_id
    epoch = previous.epoch if previous is not None and same_process else decision.next_offset
    broker = BrokerImage(
        id=request.broker_id,
        epoch=epoch,
        incarnation_id=Uuid(request.incarnation_id),
        endpoints={each.name: Endpoint(each.name, each.host, each.port, each.security_protocol) for each in request.listeners},
        features=ranges,
        rack=request.rack,
        fenced=True,
        in_controlled_shutdown=False,
        directories=tuple(Uuid(each) for each in request.log_dirs),
    )
    records: list[MetadataRecord] = [register_broker_record(broker, image.metadata_version)]
    if previous is not None and not same_process and not previous.fenced:
        default = decision.settings.unclean_leader_election_enable
        records += leader_changes(image, without=previous.id, unclean_default=default)
    return ControllerResult.of(BrokerRegistrationResponse(broker_epoch=epoch), records)


def _check_features(decision: Decision, broker_id: int, ranges: dict[str, tuple[int, int]]) -> None:
    for name, level in decision.image.features.items():
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of {name}. "
                f"The broker wants a version between {low} and {high}, inclusive.",
            )


def broker_heartbeat(decision: Decision, request: BrokerHeartbeatRequest) -> ControllerResult:
    """What a broker wants next: to be unfenced, to stay, to fence itself, to shut down in order.

    A broker is unfenced only when it has applied its own registration. A broker that shuts down first gives its leaderships
    away; it may stop when it has none left.
    """
    broker = decision.known_broker(request.broker_id, request.broker_epoch)
    caught_up = request.current_metadata_offset >= broker.epoch
    records = offline_directories(decision, broker, request.offline_log_dirs)
    fenced, may_stop = broker.fenced, False
    if records:
        # What else the broker wants is looked at with its next heartbeat, against an image that knows of the failed dirs.
        return ControllerResult.of(BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=fenced), records)
    if request.want_shut_down:
        records, fenced, may_stop = _shut_down(decision, broker)
    elif request.want_fence:
        if not broker.fenced:
            records, fenced = _fence(decision, broker), True
    elif broker.fenced and caught_up:
        records, fenced = _unfence(decision, broker), False
    response = BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=may_stop)
    return ControllerResult.of(response, records)


def _fence(decision: Decision, broker: BrokerImage) -> list[MetadataRecord]:
    default = decision.settings.unclean_leader_election_enable
    records: list[MetadataRecord] = [
        *leader_changes(decision.image, without=broker.id, unclean_default=default),
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE),
    ]
    return records


def _unfence(decision: Decision, broker: BrokerImage) -> list[MetadataRecord]:
    default = decision.settings.unclean_leader_election_enable
    records: list[MetadataRecord] = [
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE),
        *leader_changes(decision.image, plus=broker.id, unclean_default=default),
    ]
    return records


def _shut_down(decision: Decision, broker: BrokerImage) -> tuple[list[MetadataRecord], bool, bool]:
    """(records, fenced afterwards, may the process stop): all at once when nothing is left that it leads."""
    if broker.fenced:
        return [], True, True
    records: list[MetadataRecord] = []
    if not broker.in_controlled_shutdown:
        records.append(BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1))
    default = decision.settings.unclean_leader_election_enable
    records += leader_changes(decision.image, without=broker.id, unclean_default=default)
    records.append(BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE))
    return records, True, True


def unregister_broker(decision: Decision, request: UnregisterBrokerRequest) -> ControllerResult:
    """An operator says that a broker will not come back. BROKER_ID_NOT_REGISTERED when it never was there."""
    broker = decision.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered")
    default = decision.settings.unclean_leader_election_enable
    records: list[MetadataRecord] = [
        *leader_changes(decision.image, without=broker.id, unclean_default=default),
        UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch),
    ]
    return ControllerResult.of(UnregisterBrokerResponse(), records)
