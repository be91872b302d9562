"""What logins begin with."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import Opening
from tidelog.client.failures import NotAuthenticated
from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.client.net import tickets
from tidelog.client.net.credentials import Credentials
from tidelog.client.oauth import OAuth
from tidelog.client.settings import Sasl
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeResponse


def machine() -> ClientConnection:
    made = ClientConnection("me")
    made.hello()
    keys = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
    made.welcomed(ApiVersionsResponse(api_keys=[ApiVersion(api_key=key, min_version=0, max_version=2) for key in keys]))
    return made


def first_token(login: Opening) -> bytes:
    next(login)
    return login.send(SaslHandshakeResponse())


def test_each_login_has_a_nonce_of_its_own() -> None:
    credentials = Credentials(Sasl("SCRAM-SHA-256", "me", "secret"))
    sent = [first_token(credentials.login(machine(), "b:1", "b")) for _ in range(2)]
    nonces = [re.findall(rb"r=([-\w]+)", each)[0] for each in sent]
    assert nonces[0] != nonces[1]
    assert {len(nonce) for nonce in nonces} == {32}
    assert not credentials.blocking


def test_each_login_has_the_token_of_its_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    credentials = Credentials(Sasl("OAUTHBEARER", "", "", oauth=OAuth(file=str(file))))
    assert credentials.blocking
    for token in ("first", "second"):
        file.write_text(token)
        assert b"auth=Bearer %s\x01\x01" % token.encode() in first_token(credentials.login(machine(), "b:1", "b"))
    file.unlink()
    with pytest.raises(NotAuthenticated, match="cannot be read: No such file"):
        credentials.login(machine(), "b:1", "b")


@pytest.mark.parametrize("prefix", ["", "kafka."])
def test_a_user_who_is_refused_learns_which_settings_to_check(prefix: str) -> None:
    login = Credentials(Sasl("PLAIN", "me", "secret"), prefix).login(machine(), "b:1", "b")
    first_token(login)
    with pytest.raises(NotAuthenticated) as refused:
        login.send(SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="No."))
    assert str(refused.value) == (
        f"b:1 refuses user 'me' (PLAIN): No. Check {prefix}sasl.username and {prefix}sasl.password, or {prefix}sasl.jaas.config."
    )


class Ticket:
    """A login that needs nothing more than its first token."""

    first = b"ticket"
    complete = True


class Library:
    """A Kerberos library with tickets for the host ``b``."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def begin(self, kerberos: Kerberos, host: str, memory: str) -> Any:
        self.begun.append(host)
        if host != "b":
            raise NoTicket(f"no ticket for {kerberos.service}@{host}")
        return Ticket()


def test_each_login_has_a_ticket_for_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(tickets, "Tickets", partial(tickets.Tickets, begin=library.begin))
    credentials = Credentials(Sasl("GSSAPI", "ann@R", "", kerberos=Kerberos("kafka", "ann@R", "/keytab")))
    assert credentials.blocking
    assert [b"ticket" in first_token(credentials.login(machine(), "b:1", "b")) for _ in range(2)] == [True, True]
    with pytest.raises(NotAuthenticated, match="no ticket for kafka@c"):
        credentials.login(machine(), "c:1", "c")
    assert library.begun == ["b", "b", "c"]
