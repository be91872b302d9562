import pytest

from tidelog.broker.apis.topics.metadata_bytes import CLUSTER_OPERATIONS_IN, TopicBytes, put_together
from tidelog.metadata.image import BrokerImage, PartitionImage, TopicImage
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

VERSIONS = range(MetadataResponse.MIN_VERSION, MetadataResponse.MAX_VERSION + 1)
KIND = (13, "EXTERNAL", False)


def topic(name: str, partitions: int) -> MetadataResponseTopic:
    described = [
        MetadataResponsePartition(partition_index=number, leader_id=1, replica_nodes=[1, 2]) for number in range(partitions)
    ]
    return MetadataResponseTopic(name=name, partitions=described)


def image(name: str) -> TopicImage:
    return TopicImage(Uuid(name.encode().ljust(16, b".")), name, (PartitionImage((1,), (1,), 1),))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 200])
def test_what_is_put_together_is_what_would_have_been_encoded(version: int, count: int) -> None:
    topics = [topic(f"t{number}", number % 3) for number in range(count)]
    response = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h", port=9092)], cluster_id="c", controller_id=1)
    if version in CLUSTER_OPERATIONS_IN:
        response.cluster_authorized_operations = 7
    parts = []
    for each in topics:
        out = bytearray()
        each.encode_into(out, version)
        parts.append(bytes(out))
    assert put_together(response, parts, version) == response.replace(topics=topics).encode(version)


def test_another_kind_of_question_and_other_brokers_begin_anew() -> None:
    kept, brokers, other = TopicBytes(), dict[int, BrokerImage](), dict[int, BrokerImage]()
    topics = {each.id: each for each in (image("a"),)}
    described = kept.of(KIND, brokers, topics)
    described[image("a").id] = image("a"), b"a"
    assert kept.of(KIND, brokers, topics) is described
    assert kept.of((12, "EXTERNAL", False), brokers, topics) == {}
    assert kept.of(KIND, other, topics) == {}


def test_topics_that_are_gone_do_not_stay_for_good() -> None:
    kept, brokers = TopicBytes(), dict[int, BrokerImage]()
    alive = image("a")
    described = kept.of(KIND, brokers, {})
    for name in ("a", "b", "c"):
        described[image(name).id] = image(name), b""
    assert list(kept.of(KIND, brokers, {alive.id: alive})) == [alive.id]
