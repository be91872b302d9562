"""The console producer and consumer against a node: what goes in at one end comes out at the other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.console_tools import run
from tidelog.testing import Broker

GOLDEN = Path(__file__).parents[1] / "golden" / "clients" / "java_partitions.txt"
PARTITIONS = 36
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


def key(number: int) -> str:
    """The keys that the Java producer sent, of 3 to 76 bytes, some of them not ASCII."""
    text = hashlib.sha256(b"%d" % number).hexdigest()[: number % 64 + 1]
    return f"{number}-{'é漢' if number % 5 == 0 else ''}{text}"


def test_ten_thousand_keys_go_to_the_partitions_that_javas_producer_chose(broker: Broker) -> None:
    broker.create_topic("murmur", partitions=PARTITIONS)
    lines = "".join(f"{key(number)}|{number}\n" for number in range(10_000)).encode()
    flags = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "murmur"]
    sent = run(
        "console-producer", *flags, "--reader-property", "parse.key=true", "--reader-property", "key.separator=|", stdin=lines
    )
    assert sent.returncode == 0, sent.stderr
    chosen = {int(message.text): message.partition for message in broker.messages("murmur")}
    golden = GOLDEN.read_text().replace("\n", "")
    assert len(golden) == len(chosen) == 10_000
    assert "".join(DIGITS[chosen[number]] for number in range(10_000)) == golden


def test_producing_to_a_topic_that_is_not_there_warns_creates_it_and_delivers(broker: Broker) -> None:
    flags = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "non_existing_topic"]
    sent = run("console-producer", *flags, "--producer-property", "acks=all", stdin=b"hello\n")
    assert sent.returncode == 0
    assert b"LEADER_NOT_AVAILABLE" in sent.stderr
    assert [message.text for message in broker.messages("non_existing_topic")] == ["hello"]


def test_keys_headers_and_partitions_come_back_as_they_were_sent(broker: Broker) -> None:
    broker.create_topic("columns")
    flags = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "columns"]
    reader = ["parse.key=true", "parse.headers=true", "null.marker=NULL"]
    properties = [word for name in reader for word in ("--property", name)]
    sent = run(
        "console-producer", *flags, *properties, "--sync", "--compression-codec", "zstd", stdin=b"h:1\tk\tv\nh:NULL\tk2\tNULL\n"
    )
    assert sent.returncode == 0, sent.stderr
    columns = ["print.partition=true", "print.offset=true", "print.headers=true", "print.key=true"]
    properties = [word for name in columns for word in ("--property", name)]
    got = run("console-consumer", *flags, "--group", "columns", "--from-beginning", "--max-messages", "2", *properties)
    assert got.stdout == b"Partition:0\tOffset:0\th:1\tk\tv\nPartition:0\tOffset:1\th:null\tk2\tnull\n"
    assert got.stderr.endswith(b"Processed a total of 2 messages\n")


def test_a_group_goes_on_behind_what_was_printed(broker: Broker) -> None:
    broker.produce("group-work", "a", "b", "c")
    flags = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "group-work", "--group", "goes-on", "--from-beginning"]
    assert run("console-consumer", *flags, "--max-messages", "2").stdout == b"a\nb\n"
    assert run("console-consumer", *flags, "--max-messages", "1").stdout == b"c\n"


def test_one_partition_is_read_from_an_offset_until_nothing_comes(broker: Broker) -> None:
    broker.produce("from-offset", "a", "b", "c")
    flags = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "from-offset", "--partition", "0", "--offset", "1"]
    got = run("console-consumer", *flags, "--timeout-ms", "500")
    assert got.stdout == b"b\nc\n"
    assert b"TimeoutException" in got.stderr


def test_topics_may_be_chosen_by_a_pattern(broker: Broker) -> None:
    broker.produce("chosen-1", "x")
    broker.produce("chosen-2", "y")
    flags = ["--bootstrap-server", broker.bootstrap_servers, "--include", "chosen-.*", "--from-beginning", "--max-messages", "2"]
    assert sorted(run("console-consumer", *flags).stdout.split()) == [b"x", b"y"]


def test_a_record_that_cannot_be_printed_ends_the_tool_unless_told_to_skip(broker: Broker) -> None:
    broker.produce("numbers", b"\0\0\0\1", b"no", b"\0\0\0\2")
    flags = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "numbers", "--partition", "0", "--from-beginning"]
    flags += ["--value-deserializer", "IntegerDeserializer"]
    halted = run("console-consumer", *flags)
    assert (halted.returncode, halted.stdout) == (1, b"1\n")
    assert run("console-consumer", *flags, "--skip-message-on-error", "--max-messages", "3").stdout == b"1\n2\n"


@pytest.mark.parametrize(
    ("tool", "flags", "message"),
    [
        ("console-producer", ["--topic", "t"], b'"[bootstrap-server]"'),
        ("console-consumer", ["--topic", "t"], b'"[bootstrap-server]"'),
        ("console-consumer", ["--bootstrap-server", "b:1"], b"one of --topic and --include"),
        ("console-consumer", ["--bootstrap-server", "b:1", "--topic", "t", "--offset", "1"], b"add --partition"),
        (
            "console-consumer",
            ["--bootstrap-server", "b:1", "--topic", "t", "--partition", "0", "--offset", "x"],
            b"--offset 'x' is neither",
        ),
        (
            "console-consumer",
            ["--bootstrap-server", "b:1", "--topic", "t", "--partition", "0", "--group", "g"],
            b"--partition reads without a group",
        ),
    ],
)
def test_flags_that_make_no_command_are_refused(tool: str, flags: list[str], message: bytes) -> None:
    refused = run(tool, *flags)
    assert refused.returncode != 0
    assert message in refused.stderr
