"""What one client writes, every client reads back the same: all codecs, all ways of acknowledgement, odd records."""

from __future__ import annotations

import pytest

from tests.interop.clients import CLIENTS, AtTime, Client, client, fit, until
from tests.interop.java import JavaSide
from tests.interop.nodes import Node
from tests.interop.samples import BASE_TIMESTAMP, CODECS, DELIVERIES, Delivery, Read, Sample, differences, some_of_everything

pytestmark = pytest.mark.interop
SAFE = Delivery("all", True)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", CLIENTS)
def test_what_one_client_writes_every_client_reads(
    writer: str, codec: str, node: Node, java: JavaSide, clients: list[Client]
) -> None:
    """A partition per way of acknowledgement; the offsets in the acknowledgements are those that readers see."""
    topic = f"matrix-{writer}-{codec}"
    node.create(topic, len(DELIVERIES))
    by = client(writer, java)
    expected: list[Read] = []
    for partition, delivery in enumerate(DELIVERIES):
        samples = fit(by, some_of_everything(partition, f"{writer} {codec} {delivery}"))
        told = by.write(node.bootstrap, topic, samples, codec, delivery)
        want = [-1] * len(samples) if delivery.acks == "0" else list(range(len(samples)))
        assert told == want, f"{writer} {codec} {delivery}: offsets told"
        expected += [one.at(offset) for offset, one in enumerate(samples)]
    node.wait_for_end(topic, partition, len(samples))
    for reader in clients:
        found = reader.read(node.bootstrap, topic, range(len(DELIVERIES)))
        differs = differences(expected, found)
        assert not differs, f"{writer} wrote {codec}, {reader.name} read:\n{differs}"


@pytest.mark.parametrize("reader", CLIENTS)
def test_a_client_finds_beginning_end_and_times(reader: str, node: Node, java: JavaSide) -> None:
    topic = f"positions-{reader}"
    node.create(topic, 2)
    by = client(reader, java)
    times = [10, 30, 20, 60, 50, 40]
    samples = [Sample(1, b"k%d" % t, b"v%d" % t, (), BASE_TIMESTAMP + t) for t in times]
    by.write(node.bootstrap, topic, samples[:3], "none", SAFE)
    by.write(node.bootstrap, topic, samples[3:], "lz4", SAFE)
    asked = {BASE_TIMESTAMP + after: at for after, at in ((0, 0), (10, 0), (11, 1), (31, 3), (60, 3), (61, None))}

    offsets = by.offsets(node.bootstrap, topic, 1, list(asked))
    assert (offsets.beginning, offsets.end) == (0, 6)
    assert offsets.by_time == asked
    assert (by.offsets(node.bootstrap, topic, 0).beginning, by.offsets(node.bootstrap, topic, 0).end) == (0, 0)

    everything = [one.at(offset) for offset, one in enumerate(samples)]
    assert not differences(everything[4:], by.read(node.bootstrap, topic, [1], 4))
    assert not differences(everything[1:], by.read(node.bootstrap, topic, [1], AtTime(BASE_TIMESTAMP + 11)))
    assert not differences(everything, by.read(node.bootstrap, topic, [0, 1], committed=True))
    late = Sample(1, b"late", b"record", (("h", b"1"),), BASE_TIMESTAMP + 70)
    assert by.read_after_end(node.bootstrap, topic, late) == [late.at(6)]


@pytest.mark.parametrize("writer", CLIENTS)
def test_writing_to_an_unknown_topic_creates_it(writer: str, node: Node, java: JavaSide, clients: list[Client]) -> None:
    topic = f"unheard-of-{writer}"
    by = client(writer, java)
    samples = [Sample(partition, b"k", b"v%d" % partition, (), BASE_TIMESTAMP) for partition in (0, 1)]
    assert by.write(node.bootstrap, topic, samples, "none", SAFE) == [0, 0]
    assert node.describe(topic)["partitions"] == 2
    for reader in clients:
        assert not differences([one.at(0) for one in samples], reader.read(node.bootstrap, topic, [0, 1])), reader.name


@pytest.mark.parametrize("codec", CODECS)
def test_the_broker_recompresses_where_the_topic_says_so(codec: str, node: Node, java: JavaSide, clients: list[Client]) -> None:
    topic = f"recompressed-{codec}"
    node.create(topic, compression_type="uncompressed" if codec == "none" else codec)
    expected: list[Read] = []
    for by, source in zip(clients, ("zstd", "none", "gzip", "snappy"), strict=True):
        samples = fit(by, some_of_everything(0, f"{codec} from {source}"))
        told = by.write(node.bootstrap, topic, samples, source, SAFE)
        assert told == list(range(len(expected), len(expected) + len(samples)))
        expected += [one.at(offset) for offset, one in zip(told, samples, strict=True)]
    for reader in clients:
        differs = differences(expected, reader.read(node.bootstrap, topic, [0]))
        assert not differs, f"{reader.name}: {differs}"


def test_log_append_time_replaces_the_clients_timestamps(node: Node, java: JavaSide, clients: list[Client]) -> None:
    topic = "append-time"
    node.create(topic, message_timestamp_type="LogAppendTime")
    for by, codec in zip(clients, ("none", "gzip", "lz4", "zstd"), strict=True):
        by.write(node.bootstrap, topic, [Sample(0, b"k", b"v", (), BASE_TIMESTAMP) for _ in range(3)], codec, SAFE)
    first = clients[0].read(node.bootstrap, topic, [0])
    assert len(first) == 12
    assert min(one.timestamp for one in first) > BASE_TIMESTAMP + 86_400_000
    assert [one.timestamp for one in first] == sorted(one.timestamp for one in first)
    for reader in clients[1:]:
        assert not differences(first, reader.read(node.bootstrap, topic, [0])), reader.name


def test_admin_sees_what_was_created_and_a_deleted_topic_is_gone(node: Node, java: JavaSide, clients: list[Client]) -> None:
    topic = "made-by-admin"
    node.create(topic, 3, retention_ms="3600000", cleanup_policy="compact,delete")
    seen = node.describe(topic)
    assert (seen["partitions"], seen["nodes"]) == (3, 1)
    assert seen["configs"]["retention.ms"] == ["3600000", "DYNAMIC_TOPIC_CONFIG"]
    assert seen["configs"]["cleanup.policy"] == ["compact,delete", "DYNAMIC_TOPIC_CONFIG"]
    assert seen["configs"]["max.message.bytes"] == ["1048588", "DEFAULT_CONFIG"]
    clients[1].write(node.bootstrap, topic, [Sample(0, b"k", b"v", (), BASE_TIMESTAMP)], "none", SAFE)
    java.ask("delete", bootstrap=node.bootstrap, topic=topic)
    for _ in until(lambda: not (node.data / f"{topic}-0").exists(), "rename the deleted partition's folder"):
        pass
    node.create(topic)
    assert node.describe(topic)["topic_id"] != seen["topic_id"]
    for reader in clients:
        assert reader.read(node.bootstrap, topic, [0]) == [], reader.name
