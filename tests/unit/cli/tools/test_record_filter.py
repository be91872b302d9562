"""``--filter``: the console's language on consumed records, alone and in the tool on a real node."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.unit.cli.running_node import running_node
from tidelog.cli.tools.console_consumer import command
from tidelog.cli.tools.consumed_record import Consumed
from tidelog.cli.tools.record_filter import record_filter

NOW_MS = 1_000_000
RECORD = Consumed(
    "orders",
    3,
    7,
    b"k1",
    b'{"amount": 9007199254740993, "sku": ["a"], "error": null}',
    (("trace", b"first"), ("trace", b"last"), ("empty", None)),
    timestamp_ms=NOW_MS - 1000,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("value.amount == 9007199254740993", True),
        ("value.amount > 9007199254740993", False),
        ('key startswith "k" and value.sku[0] in ["a"]', True),
        ('header["trace"] == "last"', True),
        ('header["empty"] == null', True),
        ('header["none"] == null', False),
        ("has(value.error) and not has(value.none)", True),
        ("partition == 3 and offset < 8 and size(key) == 2", True),
        ("timestamp > now - 2s", True),
        ("timestamp > now", False),
        ('"9007199254740993"', True),
    ],
)
def test_the_language_is_that_of_the_console(text: str, found: bool) -> None:
    assert record_filter(text, NOW_MS)(RECORD) is found


def test_tombstones_message_pack_and_bytes_are_seen_as_the_console_sees_them() -> None:
    assert record_filter("value == null", NOW_MS)(RECORD._replace(value=None))
    assert record_filter("value.a == 1", NOW_MS)(RECORD._replace(value=b"\x81\xa1a\x01"))
    assert record_filter('value == "ff00"', NOW_MS)(RECORD._replace(value=b"\xff\x00"))
    assert not record_filter("value.a == 1", NOW_MS)(RECORD._replace(value=b"\xff\x00"))


def test_a_mistake_is_named_with_its_place() -> None:
    with pytest.raises(click.UsageError, match=r"at character 5: key = 1"):
        record_filter("key = 1", NOW_MS)


def test_the_tool_prints_what_fulfils_it_and_commits_what_it_left_out(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        producer = Producer({"bootstrap.servers": address})
        for number in range(20):
            producer.produce("orders", f'{{"n": {number}}}', partition=0)
        producer.flush(30)
        flags = ["--bootstrap-server", address, "--topic", "orders", "--from-beginning", "--group", "work"]
        result = CliRunner().invoke(command, [*flags, "--filter", "value.n in [3, 19]", "--max-messages", "2"])
        assert result.stdout == '{"n": 3}\n{"n": 19}\n'
        assert "Processed a total of 2 messages" in result.stderr
        consumer = Consumer({"bootstrap.servers": address, "group.id": "work"})
        assert consumer.committed([TopicPartition("orders", 0)], 30)[0].offset == 20
        consumer.close()
        again = CliRunner().invoke(command, [*flags[:4], "--from-beginning", "--filter", "value.n > 3", "--max-messages", "2"])
        assert again.stdout == '{"n": 4}\n{"n": 5}\n'


def test_a_filter_that_cannot_be_used_ends_the_tool_before_it_connects() -> None:
    result = CliRunner().invoke(command, ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--filter", "value >"])
    assert result.exit_code == 2
    assert "--filter" in result.stderr
