from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us
from tidelog.broker.apis.records.producers import describe_producers
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest, PartitionResponse, TopicRequest

ELSEWHERE = PartitionImage((2,), (2,), 2, directories=(b"C" * 16,))
FOLLOWED = PartitionImage((1, 2), (1, 2), 2, directories=(b"A" * 16, b"C" * 16))


def ask(world: World, name: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=list(indexes))])
    response = describe_producers(world.context(0), request)
    response.encode(0)
    return response.topics[0].partitions


def test_a_partition_names_the_producers_it_remembers() -> None:
    world = World()
    world.create("t", led_by_us(), led_by_us())
    world.partition("t").append(batch(b"a", b"b", producer_id=7, producer_epoch=2, base_sequence=3), NOW_MS, 1)
    (partition, empty) = ask(world, "t", 0, 1)
    (producer,) = partition.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 2, 4)
    assert (producer.last_timestamp, producer.coordinator_epoch, producer.current_txn_start_offset) == (NOW_MS + 1, -1, -1)
    assert (empty.error_code, empty.active_producers) == (0, [])


def test_followers_answer_too_and_partitions_that_lie_elsewhere_say_so() -> None:
    """As Apache Kafka 4.3.1 does: kafka-transactions asks all partitions of the broker that --broker-id names."""
    world = World()
    world.create("t", led_by_us(), ELSEWHERE, FOLLOWED)
    assert [each.error_code for each in ask(world, "t", 0, 1, 2, 9, -1)] == [0, 6, 0, 3, 3]
    assert [each.error_code for each in ask(world, "missing", 0)] == [3]
    assert [each.error_code for each in ask(world, "a name", 0)] == [17]


def test_a_partition_on_a_failed_disk_is_a_storage_error() -> None:
    world = World(dirs=2)
    world.create("t")
    world.partition("t").go_offline()
    assert ask(world, "t", 0)[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
