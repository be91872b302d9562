"""``dead-letters replay`` is killed again and again: each record is back in its topic once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.cli.dead_letters.cluster import DLQ, committed, give_up, make_topics
from tests.unit.cli.running_node import running_node

LETTERS = 3000
pytestmark = pytest.mark.timeout(300)


def replay(address: str, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tidelog.cli.main", "share-groups", "dead-letters", "replay", DLQ, "--execute"]
    return subprocess.Popen([*command, "--bootstrap-server", address, *words], stdout=subprocess.DEVNULL)


def end_offset(address: str) -> int:
    """Where the topic ends, open transactions included."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "ends"})
    _, high = consumer.get_watermark_offsets(TopicPartition("jobs", 1), 30)
    consumer.close()
    return int(high)


def test_each_record_is_replayed_once_however_often_the_command_is_killed(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        make_topics(address)
        give_up(address, range(LETTERS))
        for _ in range(4):
            before = end_offset(address)
            running = replay(address, "--rate", "400")
            try:
                while end_offset(address) < before + 100:
                    assert running.poll() is None, "it ended before it was killed"
                    time.sleep(0.02)
            finally:
                running.kill()
                running.wait(30)
        assert replay(address).wait(200) == 0
        found = committed(address, "jobs")
        assert Counter(value for value, _ in found) == {f"job {number}": 2 for number in range(LETTERS)}
        assert {headers["__dlq.replay.count"] for _, headers in found[LETTERS:]} == {"1"}
