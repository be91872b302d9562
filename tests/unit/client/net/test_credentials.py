"""What logins begin with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import Opening
from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.credentials import Credentials
from tidelog.client.oauth import OAuth
from tidelog.client.settings import Sasl
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
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
    sent = [first_token(credentials.login(machine(), "b:1")) for _ in range(2)]
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
        assert b"auth=Bearer %s\x01\x01" % token.encode() in first_token(credentials.login(machine(), "b:1"))
    file.unlink()
    with pytest.raises(NotAuthenticated, match="cannot be read: No such file"):
        credentials.login(machine(), "b:1")
