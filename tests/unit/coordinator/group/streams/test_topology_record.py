"""A topology as its record keeps it."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import ALL_TOPICS, WORDS, word_count
from tidelog.coordinator.group.streams.topology import configure
from tidelog.coordinator.group.streams.topology_record import described_topology, recorded, same_topology
from tidelog.protocol.messages.streams_group_heartbeat import CopartitionGroup


def test_a_topology_is_recorded_whole() -> None:
    sent = word_count(4)
    sent.subtopologies[1].copartition_groups = [CopartitionGroup([], [], [0])]
    kept = recorded(sent)
    assert kept.epoch == 4
    assert kept.subtopologies[0].repartition_sink_topics == [WORDS]
    (info,) = kept.subtopologies[1].repartition_source_topics
    assert [(each.key, each.value) for each in info.topic_configs] == [("retention.ms", "-1")]
    assert kept.subtopologies[1].copartition_groups[0].repartition_source_topics == [0]


def test_the_order_of_subtopologies_does_not_matter() -> None:
    turned = word_count()
    turned.subtopologies.reverse()
    assert same_topology(recorded(word_count()), recorded(turned))
    assert not same_topology(recorded(word_count()), recorded(word_count(1)))
    assert not same_topology(recorded(word_count()), recorded(word_count(source="other")))


def test_a_topology_is_described_as_sent_until_it_is_ready() -> None:
    kept = recorded(word_count())
    ready, early = configure(kept, ALL_TOPICS.get), configure(kept, {"in": 2}.get)
    for configured, count in ((None, 0), (early, 0), (ready, 2)):
        shown = described_topology(kept, configured)
        assert shown.subtopologies is not None
        assert shown.subtopologies[1].repartition_source_topics[0].partitions == count
