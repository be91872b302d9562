"""Topics as groups see them, and the number that Kafka writes for them."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer_driver import image_of, topic_id
from tidelog.coordinator.group.topic_metadata import TopicMetadata, combined_hash, topic_hash


@pytest.mark.parametrize(
    ("raw_id", "name", "racks", "written"),
    [
        # What Apache Kafka 4.3.1 wrote into ConsumerGroupMetadataValue for these topics.
        ("ec3c011a81a443d39988e30a62a16656", "t", [[], [], []], 8420807788363570779),
        ("990ae3fb242d4069ab37ed504d00c34f", "later", [[], []], -8929819642913462561),
        ("2af5c6f3d92f4530b49f43184b403c3e", "tp", [["r2", "r1"], ["r1", "r2"]], -5276525523643966266),
    ],
)
def test_the_number_of_topics_is_the_one_that_kafka_writes(raw_id: str, name: str, racks: list[list[str]], written: int) -> None:
    assert combined_hash([(name, topic_hash(bytes.fromhex(raw_id), name, racks))]) == written


def test_no_topics_are_zero_and_the_order_of_topics_does_not_matter() -> None:
    assert combined_hash([]) == 0
    assert combined_hash([("a", 1), ("b", 2)]) == combined_hash([("b", 2), ("a", 1)]) != combined_hash([("a", 2), ("b", 1)])


def test_the_number_changes_with_partitions_racks_and_topics_that_come_and_go() -> None:
    now = [image_of({"t": 3, "u": 1})]
    topics = TopicMetadata(lambda: now[0])
    seen = {topics.hash_of(["t", "u"])}
    assert topics.hash_of(["t", "u", "missing"]) in seen, "what does not exist does not count"
    for image in (image_of({"t": 4, "u": 1}), image_of({"t": 3, "u": 1}, racks=("a", "a")), image_of({"t": 3})):
        now[0] = image
        number = topics.hash_of(["t", "u"])
        assert number not in seen
        seen.add(number)
    now[0] = image_of({"t": 3, "u": 1})
    assert topics.hash_of(["u", "t"]) in seen


def test_names_ids_and_racks() -> None:
    topics = TopicMetadata(lambda: image_of({"t": 2}, offset=9, racks=("a", "b")))
    assert (topics.version, list(topics.names())) == (9, ["t"])
    assert topics.id_of("t") == topic_id("t") and topics.id_of("x") is None
    assert topics.name_of(topic_id("t")) == "t" and topics.name_of(topic_id("x")) is None
    assert topics.ids_of(["t", "x"]) == {topic_id("t")}
    spec = topics.spec_of(topic_id("t"))
    assert (spec.name, spec.partitions, spec.racks) == ("t", 2, (frozenset("ab"),) * 2)
    topics.forget(["t", "x"])
    assert topics.spec_of(topic_id("t")) == spec
