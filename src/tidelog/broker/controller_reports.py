"""What a broker reports to the controller: its registration, and the log dirs of its replicas (KIP-631, KIP-858).

A process registers with a new incarnation id and stays fenced until its image contains its own registration; only then may it
lead. The broker epoch is the offset of the registration record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidelog.broker.ports import Controller
from tidelog.config.listeners import EndPoint
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import ClusterImage, ControllerImage, Endpoint
from tidelog.metadata.supported_features import registered_ranges
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from tidelog.protocol.messages.broker_registration import Listener as RegisteredListener

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's numbers."""


def registration(
    node_id: int,
    cluster_id: str,
    incarnation_id: Uuid,
    *,
    endpoints: Iterable[EndPoint],
    rack: str | None,
    log_dirs: Sequence[Uuid],
    previous_broker_epoch: int,
) -> BrokerRegistrationRequest:
    """The registration of this process."""
    return BrokerRegistrationRequest(
        broker_id=node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            RegisteredListener(
                name=point.listener, host=point.host, port=point.port, security_protocol=SECURITY_PROTOCOLS[point.protocol]
            )
            for point in endpoints
        ],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in registered_ranges().items()
        ],
        rack=rack,
        log_dirs=list(log_dirs),
        previous_broker_epoch=previous_broker_epoch,
    )


def controller_image(node_id: int, incarnation_id: Uuid, endpoints: Iterable[EndPoint]) -> ControllerImage:
    """The registration that the quorum's leader writes for itself."""
    return ControllerImage(
        id=node_id,
        incarnation_id=incarnation_id,
        endpoints={
            point.listener: Endpoint(point.listener, point.host, point.port, SECURITY_PROTOCOLS[point.protocol])
            for point in endpoints
        },
        features=registered_ranges(),
    )


Placement = Mapping[Uuid, Mapping[Uuid, Sequence[int]]]
"""Partition indices by log dir id and topic id."""


def placed_elsewhere(
    image: ClusterImage, node_id: int, where: Iterable[tuple[Uuid, int, Uuid]]
) -> dict[Uuid, dict[Uuid, list[int]]]:
    """From (topic id, partition, actual dir), the partitions that ``image`` places in another dir, or in none yet."""
    result: dict[Uuid, dict[Uuid, list[int]]] = {}
    for topic_id, index, directory in where:
        topic = image.topics.by_id.get(topic_id)
        if topic is None or index >= len(topic.partitions) or node_id not in topic.partitions[index].replicas:
            continue
        if topic.partitions[index].directory(node_id) != directory:
            result.setdefault(directory, {}).setdefault(topic_id, []).append(index)
    return result


async def assign_to_dirs(controller: Controller, node_id: int, broker_epoch: int, placement: Placement) -> None:
    """Report the log dirs of replicas to the controller (KIP-858): with several dirs the broker chooses, not the controller."""
    request = AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=[
            RequestDirectoryData(
                id=directory,
                topics=[
                    RequestTopicData(
                        topic_id=topic_id, partitions=[RequestPartitionData(partition_index=index) for index in indices]
                    )
                    for topic_id, indices in topics.items()
                ],
            )
            for directory, topics in placement.items()
        ],
    )
    response: AssignReplicasToDirsResponse = await controller.submit(QuorumController.assign_replicas_to_dirs, request)
    _check("assignment of replicas to log dirs", response.error_code)


def _check(what: str, code: int) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code), f"the controller refuses this broker's {what}")
