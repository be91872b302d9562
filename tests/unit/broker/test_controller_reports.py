from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.broker.node_world import DIRECTORY, NodeWorld, run
from tidelog.broker import controller_reports
from tidelog.config.listeners import EndPoint
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.supported_features import registered_ranges
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

OTHER_DIRECTORY = Uuid(b"E" * 16)
ENDPOINTS = (EndPoint("EXTERNAL", "PLAINTEXT", "here", 9092),)


def register(world: NodeWorld, cluster_id: str = "test-cluster", log_dirs: Sequence[Uuid] = (DIRECTORY,)) -> int:
    request = controller_reports.registration(
        1,
        cluster_id,
        Uuid(b"N" * 16),
        endpoints=ENDPOINTS,
        rack=None,
        log_dirs=log_dirs,
        previous_broker_epoch=-1,
    )
    response = asked(world, QuorumController.register_broker, request)
    assert response.error_code == ErrorCode.NONE
    return response.broker_epoch  # type: ignore[no-any-return]


def heartbeat(world: NodeWorld, epoch: int, **says: Any) -> None:
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=world.broker.image.offset, **says)
    assert asked(world, QuorumController.broker_heartbeat, request).error_code == ErrorCode.NONE


def asked(world: NodeWorld, method: Any, request: Any) -> Any:
    async def ask() -> Any:
        return await world.controller.submit(method, request)

    return run(ask())


def test_a_new_process_is_fenced_until_it_has_seen_its_own_registration() -> None:
    world = NodeWorld()
    world.create("t", 2)
    epoch = register(world)
    assert epoch == world.broker.image.brokers[1].epoch > 3
    assert world.broker.image.brokers[1].fenced
    heartbeat(world, epoch)
    image = world.broker.image
    assert not image.brokers[1].fenced
    assert image.brokers[1].endpoints["EXTERNAL"].host == "here"
    assert [partition.leader for partition in image.topics.by_name["t"].partitions] == [1, 1]
    # The process before led the partitions, too: what the new one leads has another leader epoch.
    assert all(partition.leader_epoch > 0 for partition in image.topics.by_name["t"].partitions)


def test_another_clusters_broker_is_refused() -> None:
    with pytest.raises(KafkaError) as refused:
        register(NodeWorld(), cluster_id="elsewhere")
    assert refused.value.code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_who_shuts_down_leads_nothing_any_more() -> None:
    world = NodeWorld()
    world.create("t")
    for _ in ("leaderships move", "the broker is fenced"):
        heartbeat(world, 3, want_shut_down=True)
    assert world.broker.image.brokers[1].fenced
    assert world.broker.image.topics.by_name["t"].partitions[0].leader == -1


def test_failed_log_dirs_leave_the_registration() -> None:
    world = NodeWorld()
    epoch = register(world, log_dirs=(DIRECTORY, OTHER_DIRECTORY))
    heartbeat(world, epoch, offline_log_dirs=[DIRECTORY])
    assert world.broker.image.brokers[1].directories == (OTHER_DIRECTORY,)


def test_the_controllers_image_has_its_endpoints_and_features() -> None:
    image = controller_reports.controller_image(7, Uuid(b"N" * 16), (EndPoint("CONTROLLER", "SSL", "c", 1),))
    assert image.endpoints["CONTROLLER"].security_protocol == 1
    assert image.features == registered_ranges()
    world = NodeWorld()
    register(world)
    assert world.broker.image.brokers[1].features == registered_ranges()


def test_a_replica_that_lies_elsewhere_is_told_and_one_that_does_not_is_not() -> None:
    world = NodeWorld()
    topic_id = Uuid(world.create("t", 2))
    image = world.broker.image
    there = image.topics.by_id[topic_id].partitions[0].directory(1)
    where = [(topic_id, 0, there), (topic_id, 1, OTHER_DIRECTORY), (topic_id, 9, there), (Uuid(b"?" * 16), 0, there)]
    placement = controller_reports.placed_elsewhere(image, 1, where)
    assert placement == {OTHER_DIRECTORY: {topic_id: [1]}}
    run(controller_reports.assign_to_dirs(world.controller, 1, 3, placement))
    assert world.broker.image.topics.by_id[topic_id].partitions[1].directory(1) == OTHER_DIRECTORY
    assert controller_reports.placed_elsewhere(world.broker.image, 1, where) == {}
