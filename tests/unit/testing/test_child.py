"""A broker in a process of its own: the same calls, and it can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from tidelog.model.errors import ConfigError
from tidelog.testing import Broker
from tidelog.testing.child import ChildFailed
from tidelog.testing.clock import Clock


def test_it_does_what_a_broker_in_process_does() -> None:
    with Broker(process=True, config={"num.partitions": 2}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", value="v", partition=1)
        assert producer.flush(10) == 0
        broker.produce("t", ("k", "w"), partition=1)
        assert [(m.key_text, m.text) for m in broker.messages("t", 1)] == [(None, "v"), ("k", "w")]
        broker.create_topic("short", retention_ms=60_000)
        broker.produce("short", "a")
        broker.advance(600)
        assert broker.messages("short") == []
        broker.fill_disk()
        with pytest.raises(ValueError, match="KAFKA_STORAGE_ERROR"):
            broker.produce("short", "b")
        broker.fill_disk(False)
        with pytest.raises(ValueError, match="group g has no members"):
            broker.expire_member("g")
        broker.reset()
        assert broker.topics == []


def test_faults_reach_it() -> None:
    with Broker(process=True) as broker:
        broker.create_topic("t")
        broker.faults.refuse("PRODUCE", "TOPIC_AUTHORIZATION_FAILED")
        broker.faults.drop("FETCH", 2)
        broker.faults.delay("METADATA", 0.001)
        assert broker.faults.pending == 4
        said: list[KafkaError | None] = []
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", value="v", on_delivery=lambda error, _: said.append(error))
        producer.flush(10)
        assert said[0] is not None
        assert said[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        broker.faults.clear()
        assert broker.faults.pending == 0


def test_what_was_acknowledged_survives_a_kill_and_clients_find_it_on_the_same_port(tmp_path: Path) -> None:
    with Broker(process=True, data=tmp_path) as broker:
        address = broker.bootstrap_servers
        producer = Producer({"bootstrap.servers": address, "acks": "all"})
        producer.produce("t", value="before")
        assert producer.flush(10) == 0
        broker.kill()
        broker.start()
        assert broker.bootstrap_servers == address
        producer.produce("t", value="after")
        assert producer.flush(30) == 0
        assert [message.text for message in broker.messages("t")] == ["before", "after"]
        broker.restart()
        assert [message.text for message in broker.messages("t")] == ["before", "after"]


def test_one_in_this_process_can_be_restarted_but_not_killed() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        broker.produce("t", "kept")
        broker.restart()
        assert broker.bootstrap_servers == address
        assert [message.text for message in broker.messages("t")] == ["kept"]
        with pytest.raises(RuntimeError, match="process=True"):
            broker.kill()


def test_when_it_does_not_start_its_reason_and_log_are_told(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("garbage")
    broker = Broker(process=True, data=tmp_path)
    with pytest.raises(Exception, match=r"meta\.properties") as caught:
        broker.start()
    assert any("broker's process" in note for note in caught.value.__notes__)
    with pytest.raises(RuntimeError, match="does not run"):
        _ = broker.port


def test_wrong_settings_are_told_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(process=True, config={"num.partitions": "many"})
    with pytest.raises(ValueError, match="clock"):
        Broker(process=True, clock=Clock())


def test_a_dead_child_is_reported_with_its_log() -> None:
    with Broker(process=True) as broker:
        subprocess.run(["kill", "-9", str(broker.pid)], check=True)
        with pytest.raises(ChildFailed, match=r"ended \(.*\) during topics; its log ends:\n.*formatted"):
            _ = broker.topics
        assert "formatted" in broker.log
        broker.kill()


PARENT = """
import os, sys
from tidelog.testing import Broker
broker = Broker(process=True).start()
print(broker.pid, flush=True)
sys.stdin.read()
"""


def test_it_ends_with_its_parent_however_that_ends() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(child, 0)
    parent.kill()
    # The child holds the other end of its parent's stdout no more than we do: this ends when it has ended.
    watched = os.pidfd_open(child) if hasattr(os, "pidfd_open") and _alive(child) else None
    if watched is not None:
        import select

        assert select.select([watched], [], [], 30)[0], "the child outlived its parent"
        os.close(watched)
    parent.wait()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_fork_of_the_tests_process_leaves_the_broker_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(process=True) as broker:
        with monkeypatch.context() as forked:
            forked.setattr(os, "getpid", lambda: 0)
            broker._host.__del__()
        broker.create_topic("t")
        assert broker.topics == ["t"]
