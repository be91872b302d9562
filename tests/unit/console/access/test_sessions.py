from __future__ import annotations

from tidelog.console.access.sessions import IDLE_MS, LONGEST_MS, MAX_SESSIONS, Sessions


def test_a_session_is_found_by_its_token_until_it_ends() -> None:
    sessions = Sessions()
    begun = sessions.begin("token", "ann", "csrf", 0)
    assert sessions.find("token", 1) is begun
    assert sessions.find("other", 1) is None
    assert sessions.find(None, 1) is None
    assert "csrf" not in repr(begun).replace("csrf=", "")
    sessions.end("token")
    assert sessions.find("token", 1) is None


def test_a_session_ends_when_idle_and_at_last_in_any_case() -> None:
    sessions = Sessions()
    sessions.begin("idle", "ann", "c", 0)
    assert sessions.find("idle", IDLE_MS + 1) is None
    sessions.begin("busy", "ann", "c", 0)
    now_ms = 0
    while now_ms + IDLE_MS < LONGEST_MS:
        now_ms += IDLE_MS
        assert sessions.find("busy", now_ms) is not None
    assert sessions.find("busy", LONGEST_MS + 1) is None


def test_sessions_are_bounded_and_the_unused_one_goes() -> None:
    sessions = Sessions()
    sessions.begin("first", "ann", "c", 0)
    sessions.begin("second", "ann", "c", 0)
    sessions.find("first", 1)
    for number in range(MAX_SESSIONS - 1):
        sessions.begin(f"t{number}", "ann", "c", 2)
    assert sessions.find("first", 3) is not None
    assert sessions.find("second", 3) is None


def test_a_session_ends_with_what_began_it() -> None:
    sessions = Sessions()
    session = sessions.begin("t", "ann", "c", 0, until_ms=1000, roles=frozenset({"viewer"}), id_token="x" * 5000)
    assert sessions.find("t", 1000) is session
    assert session.id_token is None
    assert sessions.is_over(session, 1001)
    assert sessions.find("t", 1001) is None
    assert sessions.begin("u", "ann", "c", 0, until_ms=10 * LONGEST_MS).until_ms == LONGEST_MS
    kept = sessions.begin("v", "ann", "c", 0, id_token="head.claims.proof")
    assert sessions.end("v") is kept
    assert "head.claims.proof" not in repr(kept)


def test_a_session_that_ended_stays_over() -> None:
    sessions = Sessions()
    session = sessions.begin("t", "ann", "c", 0)
    assert not sessions.is_over(session, IDLE_MS + 1)
    assert sessions.is_over(session, LONGEST_MS + 1)
    sessions.end("t")
    assert sessions.is_over(session, 0)
    assert not sessions.is_over(None, 0)
