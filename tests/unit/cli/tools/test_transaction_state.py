"""What is asked of whom."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.cli.tools.test_transactions import hang, transactional
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import transaction_state
from tidelog.client.connection import UnsupportedByBroker
from tidelog.testing import Broker


@pytest.fixture
def session() -> Iterator[AdminSession]:
    with Broker() as broker:
        broker.create_topic("orders", 3)
        transactional(broker, "payments").commit_transaction(20)
        hang(broker)
        with AdminSession(broker.bootstrap_servers) as made:
            yield made


def test_a_filter_that_a_broker_is_too_old_for_is_not_passed_over_in_silence(
    session: AdminSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidelog.client.net.blocking.BrokerSocket.version_of", lambda self, key, highest=None: 1)
    assert [each.transactional_id for each in transaction_state.list_transactions(session)] == ["payments"]
    with pytest.raises(UnsupportedByBroker, match="v1; a filter by pattern needs v2"):
        transaction_state.list_transactions(session, pattern="p")


def test_only_what_no_coordinator_has_is_hanging(session: AdminSession) -> None:
    (found,) = transaction_state.producers(session, [("orders", 2), ("orders", 0)])
    assert transaction_state.hanging(session, [found]) == [found]
    assert transaction_state.hanging(session, []) == []


def test_partitions_that_are_not_there_are_named(session: AdminSession) -> None:
    with pytest.raises(CommandFailed, match="orders-7 has no leader"):
        transaction_state.producers(session, [("orders", 7)])
    gone = transaction_state.Producer(("orders", 7), 1, 0, 0, -1, -1, None)
    with pytest.raises(CommandFailed, match="orders-7 has no leader"):
        transaction_state.abort(session, gone)


def test_an_unknown_transactional_id_is_not_made_by_ending_it(session: AdminSession) -> None:
    with pytest.raises(CommandFailed, match="TRANSACTIONAL_ID_NOT_FOUND"):
        transaction_state.force_terminate(session, "nobody")
    assert [each.transactional_id for each in transaction_state.list_transactions(session)] == ["payments"]


def test_a_marker_has_an_epoch_also_where_no_coordinator_has_written_one_before(session: AdminSession) -> None:
    (found,) = transaction_state.producers(session, [("orders", 2)])
    assert found.coordinator_epoch == -1
    transaction_state.abort(session, found)
    (ended,) = transaction_state.producers(session, [("orders", 2)])
    assert (ended.coordinator_epoch, ended.start_offset) == (0, None)
