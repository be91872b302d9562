"""Who is asked, and how often."""

from types import SimpleNamespace

import pytest

from tidelog.cli import admin_session
from tidelog.cli.admin_session import AdminSession
from tidelog.model.errors import ErrorCode


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(admin_session, "RETRY_S", 0)
    made = AdminSession.__new__(AdminSession)
    made.timeout_ms = 60_000
    return made


def test_a_coordinator_that_loads_is_asked_again(session):
    answers = iter(
        [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE, ErrorCode.INVALID_GROUP_ID]
    )
    assert session.until_settled(lambda: next(answers), int) == ErrorCode.NONE
    assert session.until_settled(lambda: next(answers), int) == ErrorCode.INVALID_GROUP_ID


def test_when_the_time_is_up_the_last_answer_counts(session):
    session.timeout_ms = 0
    assert session.until_settled(lambda: ErrorCode.NOT_COORDINATOR, int) == ErrorCode.NOT_COORDINATOR


def test_each_leader_is_asked_once_for_its_partitions(session, monkeypatch):
    asked = {}

    def connection(broker):
        def ask(request):
            asked[broker] = [(topic.name, part.partition_index) for topic in request.topics for part in topic.partitions]
            return SimpleNamespace(topics=request.topics)

        return SimpleNamespace(ask=ask)

    monkeypatch.setattr(session, "connection", connection)
    monkeypatch.setattr(session, "leaders", lambda topics: {("t", 0): 1, ("t", 1): 2, ("u", 0): 1})
    found = session.list_offsets({("t", 0): -1, ("t", 1): -1, ("u", 0): -1, ("t", 2): -1})
    assert asked == {1: [("t", 0), ("u", 0)], 2: [("t", 1)]}
    assert ("t", 2) not in found
