"""The broker that tests of other projects use, used by its own."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.unit.broker.apis.live import Talk
from tidelog.model import errors
from tidelog.model.errors import ConfigError, ErrorCode
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.testing import Broker, Message
from tidelog.testing.node_thread import NodeThread


def test_what_a_client_writes_is_read_in_one_line() -> None:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", value="v", key="k", headers={"h": b"1"}, timestamp=123_456)
        assert producer.flush(10) == 0
        assert broker.messages("t") == [Message(b"v", b"k", {"h": b"1"}, 0, 0, 123_456)]


def test_what_is_written_in_one_line_is_read_by_a_client() -> None:
    with Broker() as broker:
        broker.create_topic("t", partitions=2)
        broker.produce("t", "a", ("k", "b"), Message(b"c", headers={"x": None}), partition=1)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        consumer.assign([TopicPartition("t", 1, 0)])
        got = consumer.consume(3, 10)
        consumer.close()
        assert [(m.key(), m.value(), m.headers()) for m in got] == [
            (None, b"a", None),
            (b"k", b"b", None),
            (None, b"c", [("x", None)]),
        ]


def test_a_group_starts_without_the_delay_of_production() -> None:
    with Broker() as broker:
        broker.produce("t", "a")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        assert [m.value() for m in consumer.consume(1, 15)] == [b"a"]
        consumer.close()


def test_two_brokers_know_nothing_of_each_other() -> None:
    with Broker() as one, Broker() as other:
        one.produce("t", "a")
        assert one.port != other.port
        assert (one.topics, other.topics) == (["t"], [])


def test_a_folder_outlives_the_broker_and_memory_as_long_as_the_object(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker:
        broker.produce("t", "kept")
    with Broker(data=tmp_path) as broker:
        assert [message.text for message in broker.messages("t")] == ["kept"]
    memory = Broker()
    with memory:
        memory.produce("t", "kept too")
    with memory:
        assert [message.text for message in memory.messages("t")] == ["kept too"]


def test_reset_leaves_nothing_behind_and_the_same_names_start_anew() -> None:
    with Broker() as broker:
        broker.produce("t", "a", "b")
        broker.faults.drop("FETCH")
        broker.reset()
        assert (broker.topics, broker.faults.pending) == ([], 0)
        broker.produce("t", "c")
        assert [(m.offset, m.text) for m in broker.messages("t")] == [(0, "c")]


def test_settings_have_kafkas_names_and_a_wrong_one_is_said_at_once() -> None:
    with Broker(config={"num.partitions": 3}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", value="v", partition=2)
        assert producer.flush(10) == 0
        assert len(broker.messages("t", 2)) == 1
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(config={"num.partitions": "many"})


def test_mistakes_are_told_with_what_there_is() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        with pytest.raises(ValueError, match="there are t"):
            broker.messages("tt")
        with pytest.raises(ValueError, match="no partition 5"):
            broker.messages("t", 5)
        with pytest.raises(ValueError, match="t was not created"):
            broker.create_topic("t")
        with pytest.raises(RuntimeError, match="runs already"):
            broker.start()
    with pytest.raises(RuntimeError, match="does not run"):
        _ = broker.bootstrap_servers


def test_compacted_topics_refuse_records_without_a_key() -> None:
    with Broker() as broker:
        broker.create_topic("t", cleanup_policy="compact")
        broker.produce("t", ("k", "v"))
        with pytest.raises(ValueError, match="refused"):
            broker.produce("t", "no key")


def test_a_full_disk_is_seen_by_clients_and_a_restart_brings_back_what_was_safe() -> None:
    with Broker() as broker:
        broker.produce("t", "before")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 2000})
        broker.fill_disk()
        errors: list[KafkaError | None] = []
        producer.produce("t", value="lost", on_delivery=lambda error, _: errors.append(error))
        producer.flush(30)
        assert errors
        assert errors[0] is not None
        with pytest.raises(ValueError, match="KAFKA_STORAGE_ERROR"):
            broker.produce("t", "a")
        broker.fill_disk(False)
        broker.restart()
        assert [message.text for message in broker.messages("t")] == ["before"]


def test_a_reset_after_a_full_disk_begins_anew_on_the_same_port() -> None:
    with Broker() as broker:
        port = broker.port
        broker.create_topic("t")
        broker.fill_disk()
        with pytest.raises(ValueError, match="KAFKA_STORAGE_ERROR"):
            broker.produce("t", "a")
        broker.reset()
        broker.produce("t", "b")
        assert (broker.port, [message.text for message in broker.messages("t")]) == (port, ["b"])


def test_a_reset_begins_anew_also_when_nobody_has_met_the_full_disk_yet_or_the_metadata_log_did() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        broker.fill_disk()
        broker.reset()
        broker.create_topic("t")
        broker.fill_disk()
        with pytest.raises(errors.KafkaError, match="its disk failed"):
            broker.create_topic("u")
        broker.fill_disk(False)
        broker.reset()
        broker.produce("t", "b")
        assert broker.topics == ["t"]


def test_a_broker_whose_start_fails_late_gives_its_port_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        port = broker.port

    async def fail(node: object) -> None:
        raise TimeoutError("no coordinators")

    monkeypatch.setattr(NodeThread, "prepare", staticmethod(fail))
    with pytest.raises(TimeoutError, match="no coordinators"):
        Broker(port=port).start()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        probe.listen()


def test_coordinators_are_there_before_anybody_asks() -> None:
    with Broker() as broker:
        for _ in range(2):
            broker.create_topic("t")
            answer = Talk(broker.port).ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            assert [each.error_code for each in answer.coordinators] == [ErrorCode.NONE]
            consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
            consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
            consumer.close()
            broker.reset()


def test_threads_that_produce_to_a_new_topic_at_once_all_do() -> None:
    with Broker() as broker, ThreadPoolExecutor(8) as pool:
        for round_ in range(5):
            topic = f"new-{round_}"
            for done in [pool.submit(broker.produce, topic, str(number)) for number in range(8)]:
                done.result(30)
            assert sorted(message.text or "" for message in broker.messages(topic)) == [str(number) for number in range(8)]


@pytest.mark.parametrize("process", [False, True])
def test_its_repr_has_the_address(process: bool) -> None:
    broker = Broker(process=process)
    assert repr(broker) == "<Broker not running>"
    with broker:
        assert repr(broker) == f"<Broker 127.0.0.1:{broker.port}{f', pid {broker.pid}' if process else ''}>"


@pytest.mark.parametrize("process", [False, True])
def test_broker_is_one_class_wherever_it_runs(process: bool) -> None:
    assert type(Broker(process=process)) is Broker


def test_what_belongs_to_the_other_kind_of_process_says_so() -> None:
    with pytest.raises(RuntimeError, match="own process; ask"):
        Broker().pid  # noqa: B018
    with pytest.raises(RuntimeError, match="own process; ask"):
        Broker().log  # noqa: B018
    with pytest.raises(RuntimeError, match="use advance"):
        Broker(process=True).clock  # noqa: B018


@pytest.mark.parametrize("process", [False, True])
def test_a_setting_that_does_not_exist_is_refused(process: bool) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean message\.max\.bytes"):
        Broker(config={"message.max.bite": 3}, process=process)


@pytest.mark.parametrize("process", [False, True])
def test_groups_and_their_committed_offsets(process: bool) -> None:
    with Broker(process=process) as broker:
        broker.create_topic("t", partitions=2)
        assert broker.groups() == []
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 1, 5), TopicPartition("t", 0, 3)], asynchronous=False)
        consumer.close()
        assert broker.groups() == ["g"]
        assert broker.committed_offsets("g") == {("t", 0): 3, ("t", 1): 5}
        with pytest.raises(ValueError, match="there is no group h; there are g"):
            broker.committed_offsets("h")
        broker.produce("t", "v")
        assert [message.text for message in broker.messages("t", 0, committed=True)] == ["v"]


@pytest.mark.parametrize("process", [False, True])
def test_more_replicas_than_brokers_are_refused(process: bool) -> None:
    with Broker(process=process) as broker:
        broker.create_topic("one", replicas=1)
        with pytest.raises(ValueError, match="topic three was not created"):
            broker.create_topic("three", replicas=3)


@pytest.mark.parametrize("users", [["alice"], [("alice", "secret")], {"alice"}, "alice", 7, []])
def test_users_of_another_shape_are_refused(users: Any) -> None:
    with pytest.raises(TypeError, match=r"must be a dict of passwords by name: users=\{\"alice\": \"secret\"\}"):
        Broker(users=users)


@pytest.mark.parametrize("tls", ["yes", None, [], {"mutual"}])
def test_tls_of_another_shape_is_refused(tls: Any) -> None:
    with pytest.raises(ValueError, match='must be True, False or "mutual"'):
        Broker(tls=tls)
