"""Broker registration: id, epoch, listeners, features and log dirs of a broker process (KIP-631, KIP-858, KIP-966)."""

from __future__ import annotations

from tidelog.controller.group_principals import check_registration
from tidelog.controller.leader_moves import when_restarted
from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import BrokerImage, Endpoint
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.snapshot import register_broker_record
from tidelog.metadata.supported_features import DIRECTORIES_MV, METADATA_VERSION
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import RESERVED_UUIDS, Uuid, uuid_to_text
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


def register_broker(decision: Decision, request: BrokerRegistrationRequest) -> ControllerResult:
    """Registers a starting broker as fenced; its epoch is the offset of the registration record. The same process asking again
    keeps its epoch and fencing state.

    KafkaError INCONSISTENT_CLUSTER_ID for a broker of another cluster; DUPLICATE_BROKER_REGISTRATION while another process of
    that id counts as alive; INVALID_REGISTRATION for impossible log dirs; UNSUPPORTED_VERSION when a finalized feature level is
    outside the supported range, or when the broker does not count ACLs that the cluster has. Leaderships and ISR memberships of
    the previous process end here, so that whatever this one leads has a new leader epoch; ``previous_broker_epoch`` says whether
    the previous process shut down cleanly.
    """
    image = decision.image
    if request.cluster_id != image.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"This cluster is {image.cluster_id}; the broker's directories were formatted for {request.cluster_id}",
        )
    previous = image.brokers.get(request.broker_id)
    same_process = previous is not None and previous.incarnation_id == request.incarnation_id
    if previous is not None and not same_process and decision.heartbeats.has_session(previous.id, previous.epoch):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another process is registered as broker {request.broker_id}, and its session has not ended. Give this one another "
            "node.id; if it is the same broker restarted, it is let in when the old session times out.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "There are no brokers of ZooKeeper clusters to migrate here.")
    _check_directories(decision, request)
    ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    _check_features(decision, ranges)
    check_registration(image, f"broker {request.broker_id}", ranges)
    records: list[MetadataRecord] = []
    if not same_process:
        clean = previous is not None and previous.epoch == request.previous_broker_epoch
        records = when_restarted(decision, request.broker_id, clean=clean)
    kept = previous if same_process else None
    broker = BrokerImage(
        id=request.broker_id,
        epoch=decision.next_offset if kept is None else kept.epoch,
        incarnation_id=Uuid(request.incarnation_id),
        endpoints={each.name: Endpoint(each.name, each.host, each.port, each.security_protocol) for each in request.listeners},
        features=ranges,
        rack=request.rack,
        fenced=True if kept is None else kept.fenced,
        in_controlled_shutdown=False if kept is None else kept.in_controlled_shutdown,
        directories=tuple(Uuid(each) for each in request.log_dirs),
    )
    records.append(register_broker_record(broker, image.metadata_version))
    if kept is None:
        decision.heartbeats.end(broker.id)
    return ControllerResult.of(BrokerRegistrationResponse(broker_epoch=broker.epoch), records)


def _check_directories(decision: Decision, request: BrokerRegistrationRequest) -> None:
    if decision.image.metadata_version < DIRECTORIES_MV:
        return
    wrong = ErrorCode.INVALID_REGISTRATION
    named = [Uuid(each) for each in request.log_dirs]
    if not named:
        raise KafkaError(wrong, "No directories specified in request")
    if any(each in RESERVED_UUIDS for each in named):
        raise KafkaError(wrong, "Reserved directory ID in request")
    if len(set(named)) != len(named):
        raise KafkaError(wrong, "Duplicate directory ID in request")
    for other in decision.image.brokers.values():
        if other.id == request.broker_id:
            continue
        for directory in other.directories:
            if directory in named:
                text = uuid_to_text(directory)
                raise KafkaError(
                    wrong,
                    f"Directory {text} belongs to broker {other.id}: format separate directories for each broker",
                )


def _check_features(decision: Decision, ranges: dict[str, tuple[int, int]]) -> None:
    if METADATA_VERSION not in ranges:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, f"Request features do not contain '{METADATA_VERSION}'")
    for name, level in decision.image.features.items():
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The cluster runs {name} at {level}, and the broker knows {low} to {high}: "
                "start a release that knows it, or change the feature first.",
            )
