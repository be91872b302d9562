"""A node in a thread: its life, calls from other threads, and settings that do not exist."""

from __future__ import annotations

import threading

import pytest

from tidelog.model.errors import ConfigError
from tidelog.testing.clock import Clock
from tidelog.testing.memory_disk import MemoryDisk
from tidelog.testing.node_thread import NOT_RUNNING, NodeThread, settings_of


def test_a_misspelled_setting_is_refused_with_the_closest_one() -> None:
    with pytest.raises(ConfigError, match=r"max\.bite is not an option of a broker\. Did you mean message\.max\.bytes\?"):
        settings_of({"message.max.bite": 3})


def test_settings_that_kafka_knows_and_tidelog_ignores_pass() -> None:
    assert settings_of({"num.partitions": 2, "zookeeper.connect": "x"})["num.partitions"] == "2"


def test_calls_run_in_the_nodes_thread_while_it_runs() -> None:
    settings = settings_of(None) | {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/memory"}
    node = NodeThread(settings, Clock())
    with pytest.raises(RuntimeError, match=NOT_RUNNING):
        node.call(lambda: None)
    disk = MemoryDisk()
    node.start(disk)
    try:
        assert node.call(lambda: threading.current_thread().name) == "tidelog-broker"
        with pytest.raises(RuntimeError, match="runs already"):
            node.start(disk)
        port = node.port
        node.keep_port()
    finally:
        node.stop()
    assert not node.is_running
    node.stop()
    node.start(disk)
    try:
        assert node.port == port
    finally:
        node.stop()
