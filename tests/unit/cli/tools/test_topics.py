from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidelog.cli.tools import topic_choice
from tidelog.cli.tools.topics import command


def topics(server: str, *args: str) -> Result:
    return CliRunner().invoke(command, ["--bootstrap-server", server, *args])


def test_a_topic_is_created_described_listed_and_deleted_in_kafkas_words(server: str) -> None:
    created = topics(server, "--create", "--topic", "orders", "--partitions", "2", "--config", "retention.ms=3600000")
    assert created.stdout == "Created topic orders.\n"
    described = topics(server, "--describe", "--topic", "orders").stdout.splitlines()
    assert re.fullmatch(
        "Topic: orders\tTopicId: [A-Za-z0-9_-]{22}\tPartitionCount: 2\tReplicationFactor: 1"
        "\tConfigs: min.insync.replicas=1,retention.ms=3600000",
        described[0],
    )
    assert described[1:] == [
        f"\tTopic: orders\tPartition: {number}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: " for number in (0, 1)
    ]
    assert "orders" in topics(server, "--list").stdout.splitlines()
    assert topics(server, "--delete", "--topic", "orders").stdout == "Deleted topic orders.\n"
    assert "orders" not in topics(server, "--list").stdout.splitlines()


def test_a_topic_is_found_by_its_id(server: str) -> None:
    topics(server, "--create", "--topic", "by-id")
    topic_id = topics(server, "--describe", "--topic", "by-id").stdout.split("\t")[1].removeprefix("TopicId: ")
    assert topics(server, "--describe", "--topic-id", topic_id).stdout.startswith("Topic: by-id\t")
    unknown = topics(server, "--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAw")
    assert "No topic has the id 'AAAAAAAAAAAAAAAAAAAAAw'" in unknown.stderr
    assert "is not valid" in topics(server, "--describe", "--topic-id", "x").stderr


@pytest.mark.parametrize("action", ["--describe", "--delete"])
def test_what_is_not_there_is_an_error_unless_that_is_expected(server: str, action: str) -> None:
    missing = topics(server, action, "--topic", "nope")
    assert missing.exit_code == 1
    assert missing.stderr == "Error while executing topic command : Topic 'nope' does not exist\n"
    assert topics(server, action, "--topic", "nope", "--if-exists").exit_code == 0


def test_a_topic_that_is_there_is_an_error_unless_that_is_expected(server: str) -> None:
    topics(server, "--create", "--topic", "twice")
    again = topics(server, "--create", "--topic", "twice")
    assert again.stderr == "Error while executing topic command : Topic 'twice' already exists.\n"
    assert topics(server, "--create", "--topic", "twice", "--if-not-exists").exit_code == 0


def test_topics_are_chosen_by_a_regular_expression(server: str) -> None:
    for name in ("a-one", "a-two", "b-one"):
        topics(server, "--create", "--topic", name)
    assert topics(server, "--list", "--topic", "a-.*,b-o.*").stdout.splitlines() == ["a-one", "a-two", "b-one"]
    assert topics(server, "--list", "--topic", "a-").stdout == ""
    assert "cannot be compiled" in topics(server, "--list", "--topic", "[").stderr


@pytest.fixture
def two_alike(server: str) -> Iterator[None]:
    """A topic whose name, read as a regular expression, is that of the other, too."""
    for name in ("orders.eu", "ordersXeu"):
        topics(server, "--create", "--topic", name, "--if-not-exists")
    yield
    topics(server, "--delete", "--topic", "orders.eu,ordersXeu", "--if-exists")


def left(server: str) -> list[str]:
    return topics(server, "--list", "--topic", "orders.+").stdout.splitlines()


@pytest.mark.usefixtures("two_alike")
def test_the_name_of_a_topic_means_that_topic_alone(server: str) -> None:
    assert topics(server, "--list", "--topic", "orders.eu").stdout == "orders.eu\n"
    assert topics(server, "--describe", "--topic", "orders.eu").stdout.count("PartitionCount") == 1
    assert topics(server, "--alter", "--topic", "orders.eu", "--partitions", "2").stdout == "Altered topic orders.eu.\n"
    assert topics(server, "--delete", "--topic", "orders.eu").stdout == "Deleted topic orders.eu.\n"
    assert left(server) == ["ordersXeu"]


@pytest.mark.usefixtures("two_alike")
@pytest.mark.parametrize("action", [("--delete",), ("--alter", "--partitions", "7")])
def test_a_question_comes_first_at_a_terminal_when_topics_were_not_named(
    server: str, monkeypatch: pytest.MonkeyPatch, action: tuple[str, ...]
) -> None:
    monkeypatch.setattr(topic_choice, "at_terminal", lambda: True)
    args = ["--bootstrap-server", server, *action, "--topic", "orders.e."]
    no = CliRunner().invoke(command, args, input="n\n")
    assert (no.exit_code, no.stdout) == (1, "")
    assert "  orders.eu\n  ordersXeu\n" in no.stderr
    assert "these 2 topics, which 'orders.e.' matches?" in no.stderr
    assert left(server) == ["orders.eu", "ordersXeu"]
    sure = CliRunner().invoke(command, [*args, "--yes"])
    assert (sure.exit_code, sure.stdout.count("orders")) == (0, 2)


@pytest.mark.usefixtures("two_alike")
def test_a_script_is_not_asked(server: str) -> None:
    done = topics(server, "--delete", "--topic", "orders.e.")
    assert (done.exit_code, done.stdout) == (0, "Deleted topic orders.eu.\nDeleted topic ordersXeu.\n")
    assert left(server) == []


def test_what_was_changed_is_printed_before_what_was_refused(server: str) -> None:
    topics(server, "--create", "--topic", "wide", "--partitions", "4")
    topics(server, "--create", "--topic", "slim", "--partitions", "1")
    both = topics(server, "--alter", "--topic", "slim,wide", "--partitions", "3")
    assert (both.exit_code, both.stdout) == (1, "Altered topic slim.\n")
    assert "wide: " in both.stderr


def test_only_topics_with_settings_of_their_own(server: str) -> None:
    topics(server, "--create", "--topic", "plain")
    topics(server, "--create", "--topic", "special", "--config", "segment.bytes=2000000")
    shown = topics(server, "--describe", "--topics-with-overrides", "--topic", "plain|special").stdout.splitlines()
    assert [line.split("\t")[0] for line in shown] == ["Topic: special"]


def test_partitions_that_lack_something_are_shown_alone(server: str) -> None:
    topics(server, "--create", "--topic", "whole")
    for flag in ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"):
        assert topics(server, "--describe", "--topic", "whole", flag).stdout == ""
    assert "Topic: whole\tPartition: 0" in topics(server, "--describe", "--topic", "whole", "--at-min-isr-partitions").stdout


def test_replicas_may_be_placed_by_hand(server: str) -> None:
    topics(server, "--create", "--topic", "placed", "--replica-assignment", "1,1")
    assert "PartitionCount: 2" in topics(server, "--describe", "--topic", "placed").stdout
    assert "1:2,2:3" in topics(server, "--create", "--topic", "bad", "--replica-assignment", "x").stderr
    assert "no such broker" in topics(server, "--create", "--topic", "bad", "--replica-assignment", "7").stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--topic", "a/b"), "Topic name is invalid"),
        (("--topic", "x", "--config", "foo=bar"), "foo"),
        (("--topic", "x", "--config", "foo"), "name=value"),
        (("--topic", "x", "--replication-factor", "3"), "Each partition needs 3 replica(s)"),
    ],
)
def test_what_cannot_be_created_says_why(server: str, args: tuple[str, ...], says: str) -> None:
    result = topics(server, "--create", *args)
    assert result.exit_code == 1
    assert says in result.stderr


def test_settings_that_defeat_themselves_are_warned_of_and_allowed(server: str) -> None:
    result = topics(server, "--create", "--topic", "tight", "--config", "min.insync.replicas=2")
    assert (result.exit_code, result.stdout) == (0, "Created topic tight.\n")
    assert result.stderr.startswith("WARNING: min.insync.replicas is 2, and a partition has 1 replica(s)")


def test_dots_and_underscores_are_warned_of(server: str) -> None:
    assert topics(server, "--create", "--topic", "a.b").stdout.startswith("WARNING: Metrics write '.'")


def test_the_flags_are_checked_before_anything_is_asked() -> None:
    assert topics("nowhere:1", "--topic", "x").exit_code == 2
    assert topics("nowhere:1", "--create").exit_code == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--create", "--delete"), "Give one action"),
        (("--list", "--describe"), "Give one action"),
        (("--create", "--partitions", "2", "--replica-assignment", "1:2"), "leave out --partitions"),
        (("--create", "--replication-factor", "2", "--replica-assignment", "1:2"), "leave out --replication-factor"),
        (("--alter", "--partitions", "2", "--replication-factor", "2"), "--replication-factor does not belong to"),
        (("--alter", "--partitions", "2", "--config", "retention.ms=1"), "--config does not belong to"),
        (("--delete", "--if-not-exists"), "--if-not-exists does not belong to"),
        (("--create", "--if-exists"), "--if-exists does not belong to"),
        (("--describe", "--partitions", "2"), "--partitions does not belong to"),
        (("--describe", "--yes"), "--yes does not belong to"),
        (("--delete", "--partition-size-limit-per-response", "5"), "--partition-size-limit-per-response does not belong to"),
        (("--alter", "--delete-config", "retention.ms"), "Use kafka-configs --alter --topic NAME --delete-config retention.ms"),
    ],
)
def test_a_flag_that_would_be_passed_over_is_refused(args: tuple[str, ...], says: str) -> None:
    result = topics("nowhere:1", "--topic", "x", *args)
    assert (result.exit_code, says in result.stderr) == (2, True)


def test_a_client_file_is_read(server: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("request.timeout.ms=5000\nclient.id=me\n")
    assert topics(server, "--list", "--command-config", str(file)).exit_code == 0
    file.write_text("security.protocol=SSL\n")
    assert "a listener without TLS (security.protocol)?" in topics(server, "--list", "--command-config", str(file)).stderr
    file.write_text("ssl.unheard.of=1\n")
    assert (
        f"{file}: The client setting 'ssl.unheard.of' is not known"
        in topics(server, "--list", "--command-config", str(file)).stderr
    )
    file.write_text("request.timeout.ms=soon\n")
    assert "request.timeout.ms is 'soon'" in topics(server, "--list", "--command-config", str(file)).stderr


def test_a_topic_is_given_more_partitions(server: str) -> None:
    topics(server, "--create", "--topic", "more", "--partitions", "1")
    assert topics(server, "--alter", "--topic", "more", "--partitions", "3").exit_code == 0
    assert topics(server, "--alter", "--topic", "more", "--partitions", "5", "--replica-assignment", "1,1,1,1,1").exit_code == 0
    assert "\tPartitionCount: 5\t" in topics(server, "--describe", "--topic", "more").stdout
    by_hand = topics(server, "--alter", "--topic", "more", "--partitions", "6", "--replica-assignment", "1,1,1,1,1,9")
    assert (by_hand.exit_code, "broker 9" in by_hand.stderr) == (1, True)
    again = topics(server, "--alter", "--topic", "more", "--partitions", "5")
    assert (again.exit_code, "already has 5 partition" in again.stderr) == (1, True)
