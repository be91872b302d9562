from typing import Any

import pytest

from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tidelog.protocol.messages.producer_ids_record import ProducerIdsRecord


def allocate(cluster: Any, broker_epoch: int | None = None) -> tuple[int, int]:
    epoch = cluster.image.brokers[1].epoch if broker_epoch is None else broker_epoch
    response = cluster.ask(QuorumController.allocate_producer_ids, AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch))
    return response.producer_id_start, response.producer_id_len


def test_each_block_begins_where_the_last_one_ended(cluster: Any) -> None:
    assert [allocate(cluster) for _ in range(3)] == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert cluster.image.next_producer_id == 3000
    assert [(r.broker_id, r.broker_epoch, r.next_producer_id) for r in cluster.records] == [
        (1, cluster.image.brokers[1].epoch, 3000)
    ]


def test_an_old_process_gets_none(cluster: Any) -> None:
    with pytest.raises(KafkaError) as caught:
        allocate(cluster, broker_epoch=0)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_ids_do_not_wrap(cluster: Any) -> None:
    last = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=2**63 - 900)
    cluster.controller.replay([last], cluster.controller.next_offset, 1, 0)
    with pytest.raises(KafkaError, match="exhausted"):
        allocate(cluster)
