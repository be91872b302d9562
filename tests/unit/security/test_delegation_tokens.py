"""Secrets of delegation tokens: what they are, whose token one is, and a whole login by one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from dataclasses import replace

import pytest

from tidelog.client.sasl import ScramConversation
from tidelog.client.settings import Sasl
from tidelog.config.options import Password
from tidelog.metadata.image import DelegationToken
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.ids import random_uuid
from tidelog.security import delegation_tokens
from tidelog.security.delegation_tokens import TokenSecrets, is_expired, may_use, password_of, principal_of, secrets_of
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.sasl import AuthenticationFailed
from tidelog.security.scram import MIN_ITERATIONS, ScramMechanism, ScramServer
from tidelog.security.scram_strangers import Strangers

TOKEN = DelegationToken("User:ann", "User:ann", ("User:bob",), 1000, 9000, 5000)
ID = "yO4EAaUhRPuSGJ3jQWWgRA"


def server(tokens: dict[str, DelegationToken], mechanism: ScramMechanism, secrets: TokenSecrets) -> ScramServer:
    def lookup(name: str, token: bool) -> delegation_tokens.Found | None:
        return secrets.login(tokens, {}, name, mechanism) if token else None

    return ScramServer(mechanism, lookup, "nonce", Strangers(mechanism, mechanism.digest, lambda: b"secret"))


def test_the_secret_is_the_hmac_of_the_id_and_the_password_its_base64() -> None:
    found = TokenSecrets("key").hmac_of(ID)
    assert found == hmac.new(b"key", ID.encode(), hashlib.sha512).digest()
    assert base64.b64decode(password_of(found)) == found
    assert TokenSecrets("other").hmac_of(ID) != found


def test_tokens_are_off_without_a_key() -> None:
    assert secrets_of(None) is None
    assert secrets_of(Password("")) is None
    secrets = secrets_of(Password("key"))
    assert secrets is not None
    assert secrets.hmac_of(ID) == TokenSecrets("key").hmac_of(ID)
    assert "key'" not in repr(secrets)


def test_a_token_is_found_by_its_secret_while_it_exists() -> None:
    secrets = TokenSecrets("key")
    tokens = {f"id-{number}": TOKEN for number in range(5)}
    for token_id in tokens:
        assert secrets.find(tokens, secrets.hmac_of(token_id)) == token_id
    assert secrets.find(tokens, secrets.hmac_of("id-5")) is None
    assert secrets.find(tokens, b"") is None
    later = {**tokens, "id-5": TOKEN}
    del later["id-0"]
    assert secrets.find(later, secrets.hmac_of("id-5")) == "id-5"
    assert secrets.find(later, secrets.hmac_of("id-0")) is None
    # Most are gone: the index is made again, and finds what is left.
    rest = {"id-5": TOKEN}
    assert secrets.find(rest, secrets.hmac_of("id-5")) == "id-5"
    assert secrets.find(rest, secrets.hmac_of("id-4")) is None
    assert len(secrets._ids) == 1


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_a_client_logs_in_by_a_token_as_its_owner_until_it_ends(mechanism: ScramMechanism) -> None:
    secrets = TokenSecrets("key")
    exchange = server({ID: TOKEN}, mechanism, secrets)
    client = ScramConversation(Sasl(mechanism.title, ID, password_of(secrets.hmac_of(ID)), token=True), "abc")
    proof = client.answer(exchange.answer(client.first()))
    assert proof is not None
    assert client.answer(exchange.answer(proof)) is None
    assert exchange.outcome == (KafkaPrincipal("User", "ann"), 5000, True)


@pytest.mark.parametrize(
    ("token_id", "password", "by_token"),
    [(ID, "wrong", True), ("another", None, True), (ID, None, False)],
    ids=["wrong hmac", "unknown id", "not as a token"],
)
def test_nothing_else_logs_in(token_id: str, password: str | None, by_token: bool) -> None:
    secrets = TokenSecrets("key")
    exchange = server({ID: TOKEN}, ScramMechanism.SHA_256, secrets)
    secret = password_of(secrets.hmac_of(token_id))
    client = ScramConversation(Sasl("SCRAM-SHA-256", token_id, password or secret, token=by_token), "abc")
    proof = client.answer(exchange.answer(client.first()))
    assert proof is not None
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.answer(proof)
    assert secret not in failed.value.reason + str(failed.value)
    assert exchange.outcome is None


@pytest.mark.parametrize("owner", ["Role:writers", "Group:staff"])
def test_a_group_or_a_role_does_not_log_in(owner: str) -> None:
    """The token of an active controller of Apache Kafka, which does not know them."""
    assert TokenSecrets("key").login({ID: TOKEN._replace(owner=owner)}, {}, ID, ScramMechanism.SHA_256) is None


GROUP_IS_DENIED = AccessControlEntry(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "Group:staff", "*", AclOperation.READ, PermissionType.DENY
)


@pytest.mark.parametrize("requester", ["User:bot", ""])
def test_a_token_of_another_requester_logs_in_only_where_no_group_can_lose_a_right(requester: str) -> None:
    """The owner may be in the group; a client with the token is in none, and would escape the DENY."""
    secrets = TokenSecrets("key")
    own, others = {ID: TOKEN}, {ID: TOKEN._replace(requester=requester)}
    allowed = replace(GROUP_IS_DENIED, permission_type=PermissionType.ALLOW)
    user = replace(GROUP_IS_DENIED, principal="User:eve")
    acls = {random_uuid(random.Random(at)): each for at, each in enumerate((allowed, user))}
    assert secrets.login(others, acls, ID, ScramMechanism.SHA_256) is not None
    denying = {**acls, random_uuid(random.Random(7)): GROUP_IS_DENIED}
    assert secrets.login(others, denying, ID, ScramMechanism.SHA_256) is None
    assert secrets.login(own, denying, ID, ScramMechanism.SHA_256) is not None
    assert secrets.login(others, acls, ID, ScramMechanism.SHA_256) is not None, "once the DENY is gone"


def test_credentials_are_derived_once_and_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[tuple[ScramMechanism, str, int]] = []

    def cheap(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
        derived.append((mechanism, password, iterations))
        return salt

    monkeypatch.setattr(delegation_tokens, "salted_password", cheap)
    monkeypatch.setattr(delegation_tokens, "MAX_CREDENTIALS", 2)
    secrets = TokenSecrets("key")
    tokens = dict.fromkeys("abc", TOKEN)
    for token_id in "aabcc":
        assert secrets.login(tokens, {}, token_id, ScramMechanism.SHA_512) is not None
    assert [password for _, password, _ in derived] == [password_of(secrets.hmac_of(each)) for each in "abc"]
    assert {iterations for _, _, iterations in derived} == {MIN_ITERATIONS}
    secrets.login(tokens, {}, "b", ScramMechanism.SHA_512)
    assert len(derived) == 3
    secrets.login(tokens, {}, "a", ScramMechanism.SHA_512)
    assert len(derived) == 4, "the oldest one was dropped"
    salts = {secrets.login(tokens, {}, each, kind)[0].salt for each in "ab" for kind in ScramMechanism}  # type: ignore[index]
    assert len(salts) == 4


def test_owners_and_renewers_and_the_end() -> None:
    assert may_use(TOKEN, "User:ann")
    assert may_use(TOKEN, "User:bob")
    assert not may_use(TOKEN, "User:eve")
    assert not is_expired(TOKEN, 5000)
    assert is_expired(TOKEN, 5001)
    assert is_expired(TOKEN._replace(expiration_timestamp=20_000), 9001)
    assert principal_of("User:CN=a:b") == KafkaPrincipal("User", "CN=a:b")
