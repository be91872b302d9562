"""The tool of consumer groups against a node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.node.console_tools import run
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        started.create_topic("orders", partitions=3)
        for partition in range(3):
            started.produce("orders", "a", "b", "c", partition=partition)
        yield started


def groups(broker: Broker, *flags: str) -> tuple[int, str]:
    """Exit code, and what the tool printed on stdout or, where that is nothing, on stderr."""
    done = run("consumer-groups", "--bootstrap-server", broker.bootstrap_servers, *flags)
    return done.returncode, (done.stdout or done.stderr).decode()


def commit(broker: Broker, group: str, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition("orders", index, offset) for index, offset in enumerate(offsets)], asynchronous=False)
    consumer.close()


def planned(broker: Broker, group: str, *flags: str) -> list[int]:
    """The new offsets by partition."""
    code, text = groups(broker, "--group", group, "--reset-offsets", "--output", "json", *flags)
    assert code == 0, text
    return [row["new_offset"] for row in json.loads(text)]


def test_a_group_without_members_is_described_in_kafkas_columns(broker: Broker) -> None:
    commit(broker, "idle", 1, 3)
    code, text = groups(broker, "--describe", "--group", "idle")
    assert code == 0
    title = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    widths = [15, 15, 10, 15, 15, 15, 15, 15, 0]
    rows = [title, ["idle", "orders", "0", "1", "3", "2", *"---"], ["idle", "orders", "1", "3", "3", "0", *"---"]]
    columns = [" ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    assert text.splitlines() == ["", *columns]


def test_members_states_and_owners_are_shown(broker: Broker) -> None:
    group = "busy"
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "client.id": "me"})
    consumer.subscribe(["orders"])
    try:
        assert len(consumer.consume(9, timeout=30)) == 9
        _, members = groups(broker, "--describe", "--group", group, "--members", "--verbose")
        assert "orders:0,1,2" in members.splitlines()[-1]
        _, state = groups(broker, "--describe", "--group", group, "--state")
        assert state.split()[-2:] == ["Stable", "1"]
        _, offsets = groups(broker, "--describe", "--group", group)
        assert [line.split()[-1] for line in offsets.splitlines()[2:]] == ["me"] * 3
        code, refused = groups(broker, "--group", group, "--reset-offsets", "--topic", "orders", "--to-earliest", "--execute")
        assert code == 1
        assert "NEW-OFFSET" in refused
        _, listed = groups(broker, "--list", "--type", "classic", "--state", "stable")
        assert listed.splitlines()[1].split() == [group, "Classic", "Stable"]
    finally:
        consumer.close()


def test_every_form_of_a_reset_plans_what_it_says(broker: Broker, tmp_path: Path) -> None:
    commit(broker, "moved", 1, 2)
    everything = ["--topic", "orders", "--dry-run"]
    assert planned(broker, "moved", *everything, "--to-earliest") == [0, 0, 0]
    assert planned(broker, "moved", *everything, "--to-latest") == [3, 3, 3]
    assert planned(broker, "moved", *everything, "--to-current") == [1, 2, 3]
    assert planned(broker, "moved", *everything, "--to-offset", "99") == [3, 3, 3]
    assert planned(broker, "moved", "--all-topics", "--dry-run", "--shift-by", "-2") == [0, 0]
    assert planned(broker, "moved", "--topic", "orders:0,2", "--dry-run", "--to-offset", "1") == [1, 1]
    assert planned(broker, "moved", *everything, "--by-duration", "P1D") == [0, 0, 0]
    assert planned(broker, "moved", "--all-topics", "--dry-run", "--to-datetime", "2001-01-01T00:00:00.000") == [0, 0]
    exported = groups(broker, "--group", "moved", "--reset-offsets", "--all-topics", "--to-earliest", "--export", "--dry-run")[1]
    assert exported == "orders,0,0\norders,1,0\n"
    (tmp_path / "plan.csv").write_text("orders,2,1\n")
    assert planned(broker, "moved", "--from-file", str(tmp_path / "plan.csv"), "--dry-run") == [1]
    _, unmoved = groups(broker, "--describe", "--group", "moved", "--output", "json")
    assert [row["current_offset"] for row in json.loads(unmoved)] == [1, 2]


def test_a_reset_moves_nothing_until_it_is_executed(broker: Broker) -> None:
    commit(broker, "executed", 1, 1)
    planned(broker, "executed", "--topic", "orders", "--to-latest")
    assert [
        row["current_offset"] for row in json.loads(groups(broker, "--describe", "--group", "executed", "--output", "json")[1])
    ] == [1, 1]
    planned(broker, "executed", "--topic", "orders", "--to-latest", "--execute")
    rows = json.loads(groups(broker, "--describe", "--group", "executed", "--output", "json")[1])
    assert [(row["current_offset"], row["lag"]) for row in rows] == [(3, 0)] * 3


def test_offsets_and_groups_are_deleted_and_what_is_not_there_is_told(broker: Broker) -> None:
    commit(broker, "gone", 1, 1, 1)
    code, text = groups(broker, "--delete-offsets", "--group", "gone", "--topic", "orders:0")
    assert (code, text.splitlines()[0]) == (0, "Request succeeded for deleting offsets from group gone.")
    code, text = groups(broker, "--delete-offsets", "--group", "gone", "--topic", "nosuch")
    assert code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in text
    code, text = groups(broker, "--delete", "--group", "gone", "--group", "never")
    assert code == 1
    assert "'never' could not be deleted due to: GROUP_ID_NOT_FOUND" in text
    assert "deleted successfully: 'gone'" in text
    code, text = groups(broker, "--describe", "--group", "gone")
    assert code == 1
    assert "Group gone not found." in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "Give one action"),
        (["--describe"], "needs either --group or --all-groups"),
        (["--reset-offsets", "--group", "g", "--to-earliest"], "--topic or --all-topics"),
        (["--reset-offsets", "--group", "g", "--topic", "t"], "[to-earliest]"),
        (
            ["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--dry-run", "--execute"],
            "one of [execute], [dry-run]",
        ),
        (["--list", "--state", "sleepy"], "Valid states are: Empty"),
    ],
)
def test_flags_that_make_no_command_are_refused(broker: Broker, flags: list[str], message: str) -> None:
    code, text = groups(broker, *flags)
    assert code != 0
    assert message in text
