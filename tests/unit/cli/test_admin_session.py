"""A session with a real node: what it asks, and errors as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.running_node import running_node
from tidelog.cli import admin_session
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.refusal import CommandFailed
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminSession]:
    directory: Path = tmp_path_factory.mktemp("node")
    with running_node(directory) as address, AdminSession(f"127.0.0.1:1, {address}") as connected:
        yield connected


def test_a_broker_is_asked_by_its_id(session: AdminSession) -> None:
    assert list(session.brokers()) == [1]
    node = session.connection(1)
    assert node.version_of(ApiKey.DESCRIBE_CLUSTER) == session.version_of(ApiKey.DESCRIBE_CLUSTER)
    assert [each.broker_id for each in node.ask(DescribeClusterRequest()).brokers] == [1]
    with pytest.raises(CommandFailed, match="The cluster has no broker 7; it has 1"):
        session.connection(7)


def test_connections_that_were_forgotten_are_opened_again(session: AdminSession) -> None:
    session.forget_connections()
    assert session.metadata([]) == []


def test_the_coordinator_of_a_group_is_a_broker(session: AdminSession) -> None:
    node_id, _, _ = session.coordinator("g")
    assert node_id == 1
    with pytest.raises(CommandFailed, match="Topic t: UNKNOWN_TOPIC_OR_PARTITION"):
        session.partitions("t")


def test_what_passes_is_asked_again(session: AdminSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_session, "RETRY_S", 0)
    answers = iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE])
    assert session.until_settled(lambda: next(answers), int) == ErrorCode.NONE
