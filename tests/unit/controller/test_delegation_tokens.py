"""Delegation tokens as the controller decides them: Kafka's rules and errors, and the sweep."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.unit.controller.conftest import Cluster
from tidelog.controller import delegation_tokens
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerSettings
from tidelog.model.errors import ErrorCode as E
from tidelog.model.errors import KafkaError
from tidelog.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from tidelog.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from tidelog.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tidelog.security.delegation_tokens import TokenRules, TokenSecrets
from tidelog.security.principal import KafkaPrincipal

ANN, BOB, EVE = (KafkaPrincipal("User", name) for name in ("ann", "bob", "eve"))
SECRETS = TokenSecrets("key")
RULES = TokenRules(SECRETS, max_lifetime_ms=7000, expiry_ms=1000, check_interval_ms=500)
NOW_MS = 100_000


class Tokens:
    """A controller with tokens; each call is at ``now_ms``."""

    def __init__(self, rules: TokenRules | None = RULES, metadata_version: int = 30) -> None:
        self.cluster = Cluster(ControllerSettings(tokens=rules), metadata_version)
        self.now_ms = NOW_MS

    def _ask(self, handler: Any, request: Any) -> Any:
        def now(controller: QuorumController, request: Any, _: int) -> Any:
            return handler(controller, request, self.now_ms)

        return self.cluster.ask(now, request)

    def create(
        self, *renewers: KafkaPrincipal, requester: KafkaPrincipal = ANN, owner: KafkaPrincipal = ANN, lifetime_ms: int = -1
    ) -> CreateDelegationTokenResponse:
        request = CreateDelegationTokenRequest(
            renewers=[CreatableRenewers(*each) for each in renewers], max_lifetime_ms=lifetime_ms
        )
        method = partial(QuorumController.create_delegation_token, requester=requester, owner=owner)
        response: CreateDelegationTokenResponse = self._ask(method, request)
        response.encode(3)
        return response

    def renew(self, shown: bytes, period_ms: int = -1, requester: KafkaPrincipal = ANN) -> tuple[int, int]:
        """Error code and new end."""
        method = partial(QuorumController.renew_delegation_token, requester=requester)
        response = self._ask(method, RenewDelegationTokenRequest(shown, period_ms))
        return response.error_code, response.expiry_timestamp_ms

    def expire(self, shown: bytes, period_ms: int = -1, requester: KafkaPrincipal = ANN) -> tuple[int, int]:
        method = partial(QuorumController.expire_delegation_token, requester=requester)
        response = self._ask(method, ExpireDelegationTokenRequest(shown, period_ms))
        return response.error_code, response.expiry_timestamp_ms

    def sweep(self, ms: int) -> list[str]:
        """The tokens that are removed when so much time has passed."""
        self.now_ms += ms
        self.cluster.steady_ms += ms
        removed: list[str] = []
        more = True
        while more:
            result = self.cluster.controller.tick(self.now_ms, self.cluster.steady_ms)
            more = self.cluster._commit(result)
            removed += [record.token_id for record in result.records]
        return removed


def test_a_token_has_an_owner_a_requester_renewers_and_two_ends() -> None:
    tokens = Tokens()
    made = tokens.create(BOB, EVE, requester=BOB)
    assert made.error_code == 0
    assert (made.principal_type, made.principal_name) == ANN
    assert (made.token_requester_principal_type, made.token_requester_principal_name) == BOB
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (NOW_MS, NOW_MS + 1000, NOW_MS + 7000)
    assert made.hmac == SECRETS.hmac_of(made.token_id)
    assert len(made.token_id) == 22
    stored = tokens.cluster.image.tokens[made.token_id]
    assert stored == ("User:ann", "User:bob", ("User:bob", "User:eve"), NOW_MS, NOW_MS + 7000, NOW_MS + 1000)
    assert repr(bytes(made.hmac)) not in repr(tokens.cluster.records)


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "end_ms"), [(-1, 7000, 1000), (0, 7000, 1000), (8000, 7000, 1000), (3000, 3000, 1000), (10, 10, 10)]
)
def test_a_lifetime_can_be_shorter_than_the_setting_and_not_longer(asked_ms: int, max_ms: int, end_ms: int) -> None:
    made = Tokens().create(lifetime_ms=asked_ms)
    assert (made.max_timestamp_ms - NOW_MS, made.expiry_timestamp_ms - NOW_MS) == (max_ms, end_ms)


def test_times_end_with_the_largest_number() -> None:
    largest = 2**63 - 1
    tokens = Tokens(RULES._replace(max_lifetime_ms=largest, expiry_ms=largest))
    made = tokens.create()
    assert (made.max_timestamp_ms, made.expiry_timestamp_ms) == (largest, largest)
    assert tokens.expire(made.hmac, largest) == (0, largest)


def test_renewers_are_users() -> None:
    tokens = Tokens()
    made = tokens.create(BOB, KafkaPrincipal("Group", "g"))
    assert (made.error_code, made.token_id, made.hmac) == (E.INVALID_PRINCIPAL_TYPE, "", b"")
    assert tokens.cluster.image.tokens == {}


def test_principals_that_other_nodes_could_not_read_are_refused() -> None:
    tokens = Tokens()
    long = KafkaPrincipal("User", "x" * 20_000)
    assert tokens.create(long).error_code == 0
    with pytest.raises(KafkaError) as refused:
        tokens.create(long, long)
    assert refused.value.code is E.INVALID_REQUEST
    assert len(tokens.cluster.image.tokens) == 1


def test_a_token_is_renewed_by_owner_and_renewers_up_to_its_age() -> None:
    tokens = Tokens()
    made = tokens.create(BOB, requester=EVE)
    tokens.now_ms += 900
    assert tokens.renew(made.hmac) == (0, NOW_MS + 1900)
    assert tokens.renew(made.hmac, 5000, BOB) == (0, NOW_MS + 1900)
    assert tokens.renew(made.hmac, 10) == (0, NOW_MS + 910)
    assert tokens.cluster.image.tokens[made.token_id].expiration_timestamp == NOW_MS + 910
    # The requester is neither of them.
    assert tokens.renew(made.hmac, requester=EVE) == (E.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    for _ in range(10):
        assert tokens.renew(made.hmac)[0] == 0
        tokens.now_ms = min(tokens.now_ms + 1000, NOW_MS + 7000)
    assert tokens.cluster.image.tokens[made.token_id].expiration_timestamp == NOW_MS + 7000
    tokens.now_ms += 1
    assert tokens.renew(made.hmac) == (E.DELEGATION_TOKEN_EXPIRED, 0)


def test_a_token_is_expired_later_or_at_once() -> None:
    tokens = Tokens()
    made = tokens.create(BOB)
    assert tokens.expire(made.hmac, 300, BOB) == (0, NOW_MS + 300)
    assert tokens.expire(made.hmac, 90_000) == (0, NOW_MS + 7000)
    assert tokens.expire(made.hmac, 0) == (0, NOW_MS)
    assert tokens.expire(made.hmac, -1, EVE) == (E.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    tokens.now_ms += 1
    assert tokens.expire(made.hmac, 300) == (E.DELEGATION_TOKEN_EXPIRED, 0)
    assert tokens.expire(made.hmac, -1) == (0, NOW_MS + 1)
    assert tokens.cluster.image.tokens == {}
    assert tokens.expire(made.hmac, -1) == (E.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_a_secret_that_fits_no_token_is_not_found() -> None:
    tokens = Tokens()
    tokens.create()
    for shown in (b"", b"guess", SECRETS.hmac_of("another")):
        assert tokens.renew(shown) == (E.DELEGATION_TOKEN_NOT_FOUND, 0)
        assert tokens.expire(shown) == (E.DELEGATION_TOKEN_NOT_FOUND, 0)


@pytest.mark.parametrize(
    ("rules", "metadata_version", "code"),
    [
        (None, 30, E.DELEGATION_TOKEN_AUTH_DISABLED),
        (None, 13, E.DELEGATION_TOKEN_AUTH_DISABLED),
        (RULES, 13, E.UNSUPPORTED_VERSION),
    ],
)
def test_tokens_need_a_secret_and_a_metadata_version(rules: TokenRules | None, metadata_version: int, code: E) -> None:
    tokens = Tokens(rules, metadata_version)
    made = tokens.create()
    assert (made.error_code, made.principal_name, made.token_id) == (code, "ann", "")
    assert tokens.renew(b"x") == (code, 0)
    assert tokens.expire(b"x") == (code, 0)
    assert tokens.cluster.image.tokens == {}


def test_metadata_version_3_6_iv2_is_enough() -> None:
    assert Tokens(metadata_version=14).create().error_code == 0


def test_ended_tokens_are_removed_at_the_interval() -> None:
    tokens = Tokens()
    short, long = tokens.create(lifetime_ms=100), tokens.create()
    assert tokens.sweep(0) == []
    assert tokens.sweep(499) == []
    assert tokens.sweep(1) == [short.token_id]
    assert list(tokens.cluster.image.tokens) == [long.token_id]
    tokens.sweep(500)
    assert list(tokens.cluster.image.tokens) == [long.token_id], "it ends at this very time"
    assert tokens.sweep(500) == [long.token_id]


def test_a_thousand_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "MAX_REMOVALS", 3)
    tokens = Tokens()
    for _ in range(8):
        tokens.create(lifetime_ms=1)
    tokens.sweep(0)
    tokens.now_ms += 500
    sizes = []
    more = True
    while more:
        result = tokens.cluster.controller.tick(tokens.now_ms, 500)
        more = tokens.cluster._commit(result)
        sizes.append(len(result.records))
    assert sizes == [3, 3, 2]


def test_without_a_secret_nothing_is_swept() -> None:
    tokens = Tokens()
    made = tokens.create(lifetime_ms=1)
    tokens.cluster.controller.set_settings(ControllerSettings())
    assert tokens.sweep(0) == tokens.sweep(5000) == []
    assert made.token_id in tokens.cluster.image.tokens
