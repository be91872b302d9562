"""A SASL exchange without a socket: which requests are served when, and how each wrong turn ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NOW_MS, NodeWorld
from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Farewell
from tidelog.broker.authentication import (
    LARGEST_FIRST_BYTES,
    LEAST_BETWEEN_MS,
    MOST_GREETINGS,
    Authentication,
    Mechanism,
    SaslListener,
    Stage,
    sasl_listener,
)
from tidelog.broker.request import Session
from tidelog.broker.table import BROKER_APIS
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol.framing import RequestHeader, decode_response_header, encode_request, response_header_is_flexible
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tidelog.security.plain import PlainServer, fixed_users
from tidelog.security.principal import ANONYMOUS, KafkaPrincipal
from tidelog.security.sasl import Authenticated, AuthenticationFailed

ALICE = b"\0alice\0secret"
DELAY_MS = 100


class TwoSteps:
    """A mechanism with two messages; the first names the user, who may log in by a token. ``expires_ms`` is the end of the
    credential."""

    last: bytes | None = b""
    """The answer to the second one."""

    def __init__(self, expires_ms: int | None) -> None:
        self._user = ""
        self._expires_ms = expires_ms
        self._by_token = False
        self.outcome: Authenticated | None = None

    def answer(self, token: bytes) -> bytes | None:
        if not self._user:
            self._user, _, mark = token.decode().partition(" by ")
            self._by_token = mark == "token"
            return b"go on"
        if token != b"please":
            raise AuthenticationFailed("no", "an impolite client")
        self.outcome = Authenticated(KafkaPrincipal("User", self._user), self._expires_ms, self._by_token)
        return self.last


class Client:
    """One connection to a listener with PLAIN and TwoSteps."""

    def __init__(
        self,
        *,
        max_reauth_ms: int = 0,
        expires_ms: int | None = None,
        two: type[TwoSteps] = TwoSteps,
        max_receive_bytes: int = 1000,
    ) -> None:
        self.now_ms = 50_000
        self.failures: list[str] = []
        self.audited: list[tuple[str, ...]] = []
        self.opened = 0
        self.chosen: list[str] = []
        self.world = world = NodeWorld()
        users = fixed_users({"alice": "secret", "bob": "secret"})
        self.listener: SaslListener = sasl_listener(
            world.broker,
            BROKER_APIS,
            {
                "PLAIN": Mechanism(lambda: PlainServer(users), max_reauth_ms, 500),
                "TWO": Mechanism(lambda: two(expires_ms), max_reauth_ms),
            },
            failed_delay_ms=DELAY_MS,
            max_receive_bytes=max_receive_bytes,
            monotonic_ms=lambda: self.now_ms,
            now_ms=lambda: NOW_MS,
            failed=lambda host, reason: self.failures.append(reason),
            audit=self,
        )
        self.session = world.session()
        handle = self.listener.dispatcher.handle
        self.authentication = Authentication(self.listener, self.session, handle, self._opened, self.chosen.append)

    def _opened(self) -> None:
        self.opened += 1

    def logged_in(self, session: Session, mechanism: str, again: bool) -> None:
        self.audited.append((str(session.principal), mechanism, "again" if again else "new"))

    def login_failed(self, listener: str, host: str, mechanism: str, reason: str) -> None:
        self.audited.append((listener, host, mechanism, reason))

    def send(self, request: Any, version: int) -> Any:
        frame = bytearray(encode_request(RequestHeader(request.API_KEY, version, 7, "me"), request)[4:])
        return self.authentication.handle(self.session, memoryview(frame))

    def ask(self, request: Any, version: int, response: Any) -> Any:
        """The response; a farewell is unwrapped."""
        outgoing = self.send(request, version)
        parts = outgoing.parts if isinstance(outgoing, Farewell) else outgoing
        assert isinstance(parts, list), outgoing
        data = b"".join(parts)[4:]
        _, position = decode_response_header(data, response_header_is_flexible(request.API_KEY, version))
        return response.decode(data[position:], version)

    def greet(self) -> Any:
        return self.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)

    def shake(self, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
        response: SaslHandshakeResponse = self.ask(SaslHandshakeRequest(mechanism=mechanism), version, SaslHandshakeResponse)
        return response

    def token(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        response: SaslAuthenticateResponse = self.ask(
            SaslAuthenticateRequest(auth_bytes=token), version, SaslAuthenticateResponse
        )
        return response

    def metadata(self) -> Any:
        return self.send(MetadataRequest(topics=[]), 9)


def logged_in(**settings: Any) -> Client:
    client = Client(**settings)
    client.shake()
    assert client.token(ALICE).error_code == 0
    return client


@pytest.mark.parametrize("greets", [False, True])
def test_a_client_authenticates_and_is_served(greets: bool) -> None:
    client = Client()
    if greets:
        assert isinstance(client.greet(), list)
    shaken = client.shake()
    assert (shaken.error_code, shaken.mechanisms) == (0, ["PLAIN", "TWO"])
    assert client.session.principal == ANONYMOUS
    answer = client.token(ALICE)
    assert (answer.error_code, answer.error_message, answer.auth_bytes, answer.session_lifetime_ms) == (0, None, b"", 0)
    assert client.session.principal == KafkaPrincipal("User", "alice")
    assert client.opened == 1
    assert isinstance(client.metadata(), list)
    assert client.failures == []


def test_a_mechanism_may_take_several_messages() -> None:
    client = Client()
    client.shake("TWO")
    assert client.token(b"carol").auth_bytes == b"go on"
    assert client.session.principal == ANONYMOUS
    assert client.token(b"please").error_code == 0
    assert client.session.principal.name == "carol"


def test_a_login_by_a_token_is_marked_as_of_the_last_login() -> None:
    client = Client(max_reauth_ms=10_000)
    for mark in ("", " by token", ""):
        client.now_ms += 2000
        client.shake("TWO")
        client.token(f"carol{mark}".encode())
        assert client.token(b"please").error_code == 0
        assert client.session.token_authenticated is bool(mark)
        assert client.session.principal.name == "carol"


# -- before --------------------------------------------------------------------------------------------------------------


def test_any_other_request_first_closes_the_connection_unanswered() -> None:
    for request, version in ((MetadataRequest(topics=[]), 9), (SaslAuthenticateRequest(auth_bytes=ALICE), 2)):
        client = Client()
        assert client.send(request, version) is CLOSE_CONNECTION
        assert client.failures
        assert client.session.principal == ANONYMOUS


def test_the_body_of_a_request_that_is_not_served_yet_is_not_read() -> None:
    client = Client()
    assert client.authentication.handle(client.session, memoryview(b"\0\3\0\x09garbage")) is CLOSE_CONNECTION


def test_a_second_greeting_closes_and_a_failed_one_may_be_repeated() -> None:
    client = Client()
    too_new = bytearray(encode_request(RequestHeader(18, 3, 7, "me"), ApiVersionsRequest())[4:])
    too_new[2:4] = (99).to_bytes(2)
    assert isinstance(client.authentication.handle(client.session, memoryview(too_new)), list)
    assert isinstance(client.send(ApiVersionsRequest(client_software_name="!", client_software_version="1"), 3), list)
    assert isinstance(client.greet(), list)
    assert client.greet() is CLOSE_CONNECTION


def test_greetings_without_success_come_to_an_end() -> None:
    client = Client()
    greeting = ApiVersionsRequest(client_software_name="!", client_software_version="1")
    for _ in range(MOST_GREETINGS):
        assert isinstance(client.send(greeting, 3), list)
    assert client.send(greeting, 3) is CLOSE_CONNECTION
    assert client.failures == ["more than 10 ApiVersions"]


@pytest.mark.parametrize("start", [b"\0\x12\0\3\0\0\0\1\xff\xff", b"\0\x11\0\1\0\0\0\1\xff\xff"])
def test_a_first_request_full_of_tags_is_not_read(start: bytes) -> None:
    client = Client()
    count = b"\x80\x80\x10"  # 262,144 empty tags
    assert client.authentication.handle(client.session, memoryview(start + count + bytes(2 << 18))) is CLOSE_CONNECTION
    assert "bytes before the client authenticated" in client.failures[0]


@pytest.mark.parametrize(
    "start",
    [
        b"\0\x24\0\2\0\0\0\1\xff\xff",  # in the header
        b"\0\x24\0\2\0\0\0\1\xff\xff\0\2x",  # after a token of one byte
    ],
)
def test_a_token_request_full_of_tags_is_not_read(start: bytes) -> None:
    client = Client()
    client.shake()
    tags = b"\xe0\xff\x0f" + bytes(2 * 262_112)
    with pytest.raises(ProtocolViolation, match="262112 tags that this version does not have"):
        client.authentication.handle(client.session, memoryview(start + tags))
    assert client.session.principal == ANONYMOUS


def test_a_greeting_of_an_unknown_version_in_the_middle_closes() -> None:
    client = Client()
    client.shake()
    too_new = bytearray(encode_request(RequestHeader(18, 3, 7, "me"), ApiVersionsRequest())[4:])
    too_new[2:4] = (99).to_bytes(2)
    assert client.authentication.handle(client.session, memoryview(too_new)) is CLOSE_CONNECTION
    assert client.authentication.stage is Stage.ENDED


def test_an_unknown_mechanism_is_answered_with_those_on_offer_and_a_close() -> None:
    client = Client()
    outgoing = client.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert isinstance(outgoing, Farewell)
    assert outgoing.delay_ms == DELAY_MS
    assert client.failures == ["it asks for the mechanism 'GSSAPI'; PLAIN, TWO are offered"]
    assert client.metadata() is CLOSE_CONNECTION
    refused = Client().shake("GSSAPI")
    assert (refused.error_code, refused.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN", "TWO"])


def test_the_limit_of_a_frame_before_the_end_of_a_login_is_that_of_the_mechanism_and_at_most_the_setting() -> None:
    listener = Client(max_receive_bytes=100_000).listener
    assert listener.largest_frame("") == (LARGEST_FIRST_BYTES, "before a login")
    assert listener.largest_frame("PLAIN") == (LARGEST_FIRST_BYTES + 500, "during a login by PLAIN")
    option = "sasl.server.max.receive.size, because the client has not authenticated"
    assert listener.largest_frame("TWO") == (100_000, option)
    listener = Client(max_receive_bytes=1000).listener
    assert listener.largest_frame("") == listener.largest_frame("PLAIN") == (1000, option)


@pytest.mark.parametrize("version", [0, 1])
def test_the_chosen_mechanism_is_reported_once_it_is_known_and_not_when_a_client_authenticates_again(version: int) -> None:
    client = Client(max_reauth_ms=5000)
    client.greet()
    assert client.chosen == []
    client.shake(version=version)
    assert client.chosen == ["PLAIN"]
    client = logged_in(max_reauth_ms=5000)
    client.now_ms += 4000
    assert client.shake().error_code == 0
    assert client.chosen == ["PLAIN"]
    client = Client()
    client.shake("GSSAPI")
    assert client.chosen == []


# -- in the middle -------------------------------------------------------------------------------------------------------


def test_a_wrong_password_is_answered_late_and_then_the_connection_closes() -> None:
    client = Client()
    client.shake()
    outgoing = client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    assert isinstance(outgoing, Farewell)
    assert outgoing.delay_ms == DELAY_MS
    assert client.session.principal == ANONYMOUS
    assert len(client.failures) == 1
    assert "wrong" not in client.failures[0].replace("wrong password", "")
    answer = Client()
    answer.shake()
    refused = answer.token(b"\0alice\0wrong")
    assert (refused.error_code, refused.auth_bytes) == (ErrorCode.SASL_AUTHENTICATION_FAILED, b"")
    assert refused.error_message == "the user name or the password is wrong"


def test_another_request_in_the_middle_is_answered_in_its_own_layout() -> None:
    client = Client()
    client.shake()
    answer = client.ask(MetadataRequest(topics=None), 9, MetadataResponse)
    assert isinstance(answer, MetadataResponse)
    assert client.authentication.stage is Stage.ENDED
    greeting = Client()
    greeting.shake()
    refused = greeting.ask(ApiVersionsRequest(), 2, ApiVersionsResponse)
    assert refused.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert refused.api_keys == []


@pytest.mark.parametrize("version", range(14))
def test_metadata_in_the_middle_of_a_login_tells_nothing_of_the_cluster(version: int) -> None:
    """Neither topics nor their ids, brokers or the cluster's id, as in Kafka."""
    for names in (None, ["there", "missing"]):
        client = Client()
        client.world.create("there")
        client.shake()
        asked = [MetadataRequestTopic(name=name) for name in names or ()]
        request = MetadataRequest(topics=asked if names or version == 0 else None)
        answer: MetadataResponse = client.ask(request, version, MetadataResponse)
        assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)
        assert [(each.error_code, each.name, each.topic_id, each.partitions) for each in answer.topics] == [
            (ErrorCode.ILLEGAL_SASL_STATE, name, ZERO_UUID, []) for name in names or ()
        ]
        assert answer.error_code == (ErrorCode.ILLEGAL_SASL_STATE if version >= 13 else 0)


@pytest.mark.parametrize("here", [True, False])
def test_no_permission_and_no_controller_is_asked_in_the_middle_of_a_login(here: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is ANONYMOUS there, which may be a super user."""
    monkeypatch.setattr(NodeWorld().controller.__class__, "is_here", here)
    for request, response in (
        (CreateAclsRequest([AclCreation()]), CreateAclsResponse),
        (DescribeAclsRequest(), DescribeAclsResponse),
    ):
        client = Client()
        access = client.world.broker.access = Allowing()
        client.shake()
        answer: Any = client.ask(request, 3, response)
        code = answer.results[0].error_code if isinstance(answer, CreateAclsResponse) else answer.error_code
        assert (code, access.loud) == (ErrorCode.ILLEGAL_SASL_STATE, [])


def test_a_large_request_in_the_middle_is_not_even_decoded() -> None:
    client = Client()
    client.shake()
    topics = [CreatableTopic(name=f"topic-{number}") for number in range(2000)]
    assert client.send(CreateTopicsRequest(topics=topics), 7) is CLOSE_CONNECTION


def test_an_unreadable_token_request_closes_the_connection() -> None:
    client = Client()
    client.shake()
    with pytest.raises(ProtocolViolation):
        client.authentication.handle(client.session, memoryview(b"\0\x24\0\2\0\0\0\1\xff\xff\0\x7f"))


# -- tokens without headers ----------------------------------------------------------------------------------------------


def test_after_a_handshake_of_version_0_tokens_have_no_header() -> None:
    client = Client()
    assert client.shake(version=0).error_code == 0
    outgoing = client.authentication.handle(client.session, memoryview(ALICE))
    assert outgoing == [bytes(4), b""]
    assert client.session.principal.name == "alice"
    assert isinstance(client.metadata(), list)


class Silent(TwoSteps):
    """A mechanism whose last message is the client's, as GSSAPI's is."""

    last = None


def test_a_last_token_that_has_no_answer_gets_none_without_headers_and_an_empty_one_with() -> None:
    client = Client(two=Silent)
    client.shake("TWO", version=0)
    assert client.authentication.handle(client.session, memoryview(b"carol")) == [(5).to_bytes(4), b"go on"]
    assert client.authentication.handle(client.session, memoryview(b"please")) is NO_RESPONSE
    assert client.opened == 1
    assert isinstance(client.metadata(), list)
    client = Client(two=Silent)
    client.shake("TWO")
    client.token(b"carol")
    answer = client.token(b"please")
    assert (answer.error_code, answer.auth_bytes) == (0, b"")


def test_a_wrong_token_without_header_only_ends_the_connection() -> None:
    client = Client()
    client.shake(version=0)
    outgoing = client.authentication.handle(client.session, memoryview(b"\0alice\0no"))
    assert isinstance(outgoing, Farewell)
    assert (outgoing.parts, outgoing.delay_ms) == ([], DELAY_MS)


# -- sessions that end ---------------------------------------------------------------------------------------------------


def test_without_an_end_of_the_session_a_new_handshake_is_refused_and_the_connection_lives() -> None:
    client = logged_in()
    shaken = client.shake()
    assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    assert client.token(ALICE).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert isinstance(client.metadata(), list)
    assert client.authentication.stage is Stage.OPEN


def test_the_lifetime_is_the_shorter_of_the_setting_and_the_credential() -> None:
    for max_reauth_ms, expires_ms, expected in ((5000, None, 5000), (0, NOW_MS + 700, 700), (5000, NOW_MS + 700, 700)):
        client = Client(max_reauth_ms=max_reauth_ms, expires_ms=expires_ms)
        client.shake("TWO")
        assert client.token(b"carol").session_lifetime_ms == 0
        assert client.token(b"please").session_lifetime_ms == expected


def test_an_expired_credential_does_not_log_in() -> None:
    client = Client(expires_ms=NOW_MS)
    client.shake("TWO")
    client.token(b"carol")
    assert client.token(b"please").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.session.principal == ANONYMOUS


def test_a_client_that_authenticates_again_goes_on() -> None:
    client = logged_in(max_reauth_ms=5000)
    client.now_ms += 4000
    assert client.shake().error_code == 0
    assert client.token(ALICE).session_lifetime_ms == 5000
    client.now_ms += 4000
    assert isinstance(client.metadata(), list)
    assert client.opened == 1


def test_an_old_session_ends_with_its_next_request() -> None:
    client = logged_in(max_reauth_ms=5000)
    client.now_ms += 4999
    assert isinstance(client.metadata(), list)
    client.now_ms += 1
    assert client.metadata() is CLOSE_CONNECTION
    late = logged_in(max_reauth_ms=5000)
    late.now_ms += 9000
    assert late.shake().error_code == 0
    assert late.token(ALICE).error_code == 0
    assert isinstance(late.metadata(), list)


def test_a_client_authenticates_again_at_most_once_a_second() -> None:
    client = logged_in(max_reauth_ms=900)
    assert client.shake().error_code == 0, "the first one at once: the session is shorter than a second"
    client.now_ms += 500
    assert client.token(ALICE).session_lifetime_ms == 900
    client.now_ms += 499
    assert client.shake().error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert isinstance(client.metadata(), list)
    client.now_ms += 1
    assert client.shake().error_code == 0


def test_requests_have_to_wait_for_the_end_of_a_second_exchange() -> None:
    client = logged_in(max_reauth_ms=5000)
    client.now_ms += 4000
    client.shake()
    assert isinstance(client.metadata(), Farewell)


def test_a_connection_keeps_its_user_and_its_mechanism() -> None:
    other = logged_in(max_reauth_ms=5000)
    other.now_ms += 4000
    other.shake()
    assert isinstance(other.send(SaslAuthenticateRequest(auth_bytes=b"\0bob\0secret"), 2), Farewell)
    assert other.session.principal.name == "alice"
    assert other.metadata() is CLOSE_CONNECTION
    switched = logged_in(max_reauth_ms=5000)
    switched.now_ms += 4000
    assert switched.shake("TWO").error_code == 0
    assert switched.token(b"alice").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    unknown = logged_in(max_reauth_ms=5000)
    unknown.now_ms += 4000
    assert isinstance(unknown.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1), Farewell)


def test_logins_and_failed_ones_are_audited_without_a_secret() -> None:
    client = logged_in(max_reauth_ms=60_000)
    client.now_ms += LEAST_BETWEEN_MS
    client.shake()
    assert client.token(ALICE).error_code == 0
    assert client.audited == [("User:alice", "PLAIN", "new"), ("User:alice", "PLAIN", "again")]
    client = Client()
    client.shake("SCRAM-SHA-1")
    assert client.audited == [("EXTERNAL", "10.0.0.1", "", client.failures[0])]
    client = Client()
    client.shake()
    client.token(b"\0alice\0a-wrong-password")
    assert client.audited == [("EXTERNAL", "10.0.0.1", "PLAIN", client.failures[0])]
    assert "alice" in client.failures[0] and "wrong-password" not in client.failures[0]
    client = Client()
    client.metadata()
    assert client.audited == [("EXTERNAL", "10.0.0.1", "", client.failures[0])]
    client = Client()
    client.shake()
    client.metadata()
    assert client.audited == [("EXTERNAL", "10.0.0.1", "PLAIN", client.failures[0])]
    client = Client()
    client.shake(version=0)
    client.authentication.handle(client.session, memoryview(bytearray(b"\0alice\0wrong")))
    assert len(client.audited) == 1


class Scram(TwoSteps):
    """Like TwoSteps, by a delegation token where the user says so."""

    def answer(self, token: bytes) -> bytes | None:
        answer = super().answer(token)
        if self.outcome is not None:
            self.outcome = self.outcome._replace(by_token=self.outcome.principal.name == "token")
        return answer


@pytest.mark.parametrize(
    ("mechanism", "user", "credential"),
    [
        ("SCRAM-SHA-256", b"alice", ("alice", "SCRAM-SHA-256")),
        ("SCRAM-SHA-256", b"token", None),
        ("TWO", b"alice", None),
    ],
)
def test_the_stored_credential_of_a_session_is_known(mechanism: str, user: bytes, credential: tuple[str, str] | None) -> None:
    client = Client()
    client.listener.mechanisms["SCRAM-SHA-256"] = Mechanism(lambda: Scram(None))  # type: ignore[index]
    client.shake(mechanism)
    client.token(user)
    assert client.authentication.credential is None, "the client has not proved anything yet"
    assert client.token(b"please").error_code == 0
    assert client.authentication.credential == credential
