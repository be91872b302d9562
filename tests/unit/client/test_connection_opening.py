"""The first requests of a connection, answered without a socket."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import Opening, SessionClock, SetupTimeout, authentication, versions
from tidelog.client.failures import NotAuthenticated
from tidelog.client.settings import Sasl
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeResponse

PLAIN = Sasl("PLAIN", "me", "secret")
SERVED = [ApiVersion(api_key=key, min_version=0, max_version=2) for key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)]


def opened(opening: Opening, *answers: Any) -> list[bytes]:
    """The frames that were sent."""
    sent = []
    left = iter(answers)
    try:
        sent.append(next(opening))
        while True:
            sent.append(opening.send(next(left)))
    except StopIteration:
        return sent


def machine(*served: ApiVersion) -> ClientConnection:
    made = ClientConnection("me")
    opened(versions(made), ApiVersionsResponse(api_keys=list(served)))
    return made


def test_a_broker_that_knows_only_old_versions_is_asked_twice() -> None:
    made = ClientConnection("me")
    old = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assert len(opened(versions(made), old, ApiVersionsResponse(api_keys=SERVED))) == 2
    assert made.version_of(ApiKey.SASL_HANDSHAKE) == 1
    with pytest.raises(ProtocolViolation):
        opened(versions(ClientConnection("me")), ApiVersionsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))


def test_name_and_password_go_out_once_the_mechanism_is_agreed_on() -> None:
    talk = authentication(machine(*SERVED), PLAIN, "b:1", "n")
    sent = opened(talk, SaslHandshakeResponse(), SaslAuthenticateResponse())
    assert [b"\0me\0secret" in frame for frame in sent] == [False, True]


def result(opening: Opening, *answers: Any) -> int:
    """What the opening returns."""
    left = iter(answers)
    try:
        next(opening)
        while True:
            opening.send(next(left))
    except StopIteration as end:
        return int(end.value)


def test_a_login_returns_how_long_the_session_lasts() -> None:
    for lifetime_ms in (0, 5000):
        talk = authentication(machine(*SERVED), PLAIN, "b:1", "n")
        assert result(talk, SaslHandshakeResponse(), SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms)) == lifetime_ms


@pytest.mark.parametrize(
    ("lifetime_ms", "spread", "due_s"), [(10_000, 0.0, 8.5), (10_000, 1.0, 9.5), (1_000, 0.5, 1.1), (1, 0.0, 1.1)]
)
def test_a_client_logs_in_again_at_the_end_of_most_of_a_session_and_not_within_a_second(
    lifetime_ms: int, spread: float, due_s: float
) -> None:
    clock = SessionClock()
    assert not clock.is_due(1e9)
    clock.began(lifetime_ms, 100.0, 100.0, spread)
    assert [clock.is_due(100.0 + due_s + step) for step in (-0.01, 0.01, 60.0)] == [False, True, True]
    clock.began(0, 200.0, 200.0, spread)
    assert not clock.is_due(1e9)


@pytest.mark.parametrize(("lifetime_ms", "due_s"), [(10_000, 8.5), (2_000, 2.6)])
def test_a_slow_login_is_followed_by_another_one_a_second_after_its_end(lifetime_ms: int, due_s: float) -> None:
    clock = SessionClock()
    clock.began(lifetime_ms, 100.0, 101.5, 0.0)
    assert [clock.is_due(100.0 + due_s + step) for step in (-0.01, 0.01)] == [False, True]


def test_a_login_that_is_refused_as_too_soon_says_what_to_change() -> None:
    again = machine(*SERVED)
    opened(authentication(again, PLAIN, "b:1", "n"), SaslHandshakeResponse(), SaslAuthenticateResponse(session_lifetime_ms=900))
    refusal = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    with pytest.raises(NotAuthenticated, match=r"holds for 900 ms: .* one login a second .* raise connections\.max\.reauth\.ms"):
        opened(authentication(again, PLAIN, "b:1", "n"), refusal)
    with pytest.raises(NotAuthenticated, match="has no SASL there"):
        opened(authentication(machine(*SERVED), PLAIN, "b:1", "n"), refusal)


def test_a_token_that_is_refused_is_acknowledged_before_the_login_fails() -> None:
    sasl = Sasl("OAUTHBEARER", "", "a.b.c")
    refusal = SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
    failed = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="no")
    with pytest.raises(NotAuthenticated, match=r"b:1 refuses the token \(OAUTHBEARER\): no"):
        opened(authentication(machine(*SERVED), sasl, "b:1", "n"), SaslHandshakeResponse(), refusal, failed)
    with pytest.raises(NotAuthenticated, match=r"does not end the login: .*invalid_token"):
        opened(authentication(machine(*SERVED), sasl, "b:1", "n"), SaslHandshakeResponse(), refusal, refusal)


@pytest.mark.parametrize(
    ("served", "answers", "said"),
    [
        ((), (), r"b:1 has no SASL there: set kafka\.security\.protocol"),
        (
            SERVED,
            [SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["SCRAM-SHA-256"])],
            "does not take PLAIN, but SCRAM-SHA-256",
        ),
        (
            SERVED,
            [SaslHandshakeResponse(), SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED)],
            r"refuses user 'me' \(PLAIN\): SASL_AUTHENTICATION_FAILED",
        ),
    ],
)
def test_what_is_refused_names_the_setting_or_the_user(served: Any, answers: Any, said: str) -> None:
    with pytest.raises(NotAuthenticated, match=said):
        opened(authentication(machine(*served), PLAIN, "b:1", "n", "kafka."), *answers)


class Ticket:
    """A login that is complete with its ticket."""

    first = b"ticket"
    complete = True

    def step(self, token: bytes) -> bytes:
        raise AssertionError

    def wrap(self, message: bytes) -> bytes:
        return message

    def unwrap(self, message: bytes) -> bytes:
        if message == b"nonsense":
            raise ProtocolViolation("not sealed")
        return message


def test_a_ticket_that_is_refused_is_named_by_its_principal_where_that_is_known() -> None:
    failed = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="no")
    for principal, said in (("ann@R", r"b:1 refuses user 'ann@R' \(GSSAPI\): no"), ("", r"b:1 refuses the ticket \(GSSAPI\)")):
        talk = authentication(machine(*SERVED), Sasl("GSSAPI", principal, ""), "b:1", "n", ticket=Ticket())
        with pytest.raises(NotAuthenticated, match=said):
            opened(talk, SaslHandshakeResponse(), failed)
    talk = authentication(machine(*SERVED), Sasl("GSSAPI", "", ""), "b:1", "n", ticket=Ticket())
    with pytest.raises(NotAuthenticated, match="GSSAPI with b:1 failed: not sealed"):
        opened(talk, SaslHandshakeResponse(), SaslAuthenticateResponse(auth_bytes=b"nonsense"))
    talk = authentication(machine(*SERVED), Sasl("GSSAPI", "", ""), "b:1", "n", ticket=Ticket())
    offer, end = SaslAuthenticateResponse(auth_bytes=b"\x01\0\0\0"), SaslAuthenticateResponse(session_lifetime_ms=5000)
    assert result(talk, SaslHandshakeResponse(), offer, end) == 5000


def test_a_scram_server_that_says_nothing_useful_is_refused() -> None:
    talk = authentication(machine(*SERVED), Sasl("SCRAM-SHA-256", "me", "p"), "b:1", "n")
    with pytest.raises(NotAuthenticated, match="SCRAM-SHA-256 with b:1 failed"):
        opened(talk, SaslHandshakeResponse(), SaslAuthenticateResponse(auth_bytes=b"r=other"))


def test_each_failed_attempt_doubles_the_setup_timeout_up_to_the_longest() -> None:
    limits = SetupTimeout(1_000, 5_000)
    assert [limits.after(failures, 1.0) for failures in range(4)] == [1_000, 2_000, 4_000, 5_000]
    assert [limits.after(failures, 1.1) for failures in (0, 1, 2, 3)] == pytest.approx([1_000, 2_200, 4_400, 5_000])
    assert limits.after(10**6, 0.8) == 5_000
    assert SetupTimeout(8_000, 5_000).after(1, 1.0) == 8_000
