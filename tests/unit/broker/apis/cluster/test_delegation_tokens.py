"""Which clients may ask for delegation tokens, and which tokens they see; in memory, with the real controller."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NOW_MS, NodeWorld, run
from tidelog.broker.envelope import envelope, sealed_request, unsealed
from tidelog.broker.node import BrokerContext
from tidelog.broker.ports import Asker
from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.controller.result import ControllerSettings
from tidelog.metadata.image import DelegationToken
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.errors import ErrorCode as E
from tidelog.model.errors import KafkaError
from tidelog.model.ids import random_uuid
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from tidelog.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from tidelog.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from tidelog.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tidelog.security.delegation_tokens import TokenSecrets
from tidelog.security.principal import ANONYMOUS, KafkaPrincipal, with_groups
from tidelog.server.component_settings import token_rules

SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,TLS:SSL",
    "delegation.token.secret.key": "key",
}
ANN = KafkaPrincipal("User", "ann")
SECRETS = TokenSecrets("key")
CREATE = CreateDelegationTokenRequest(max_lifetime_ms=-1)
EACH = (
    CREATE,
    RenewDelegationTokenRequest(b"x", -1),
    ExpireDelegationTokenRequest(b"x", -1),
    DescribeDelegationTokenRequest(None),
)
OTHERS = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="carol", max_lifetime_ms=-1)


def world(on: bool = True) -> NodeWorld:
    made = NodeWorld(SETTINGS if on else {key: SETTINGS[key] for key in list(SETTINGS)[:1]})
    made.controller.settings = ControllerSettings(tokens=token_rules(made.config))
    made.controller.take_over(made.broker.image)
    return made


def context(
    made: NodeWorld, version: int = 3, listener: str = "EXTERNAL", principal: KafkaPrincipal = ANN, **session: Any
) -> BrokerContext:
    ctx = made.context(version, listener)
    ctx.principal = ctx.session.principal = principal
    for name, value in session.items():
        setattr(ctx.session, name, value)
    return ctx


def ask(ctx: BrokerContext, request: Any) -> Any:
    """The answer as it travels, also that of a refusal."""
    route = BROKER_APIS[request.API_KEY]
    ctx.api_key = request.API_KEY
    ctx.api_version = min(ctx.api_version, request.MAX_VERSION)
    try:
        answer = route.handler(ctx, request)
        answer = run(answer) if isinstance(answer, Coroutine) else answer
    except KafkaError as error:
        answer = route.api.refuse(ctx, request, error)
    return type(answer).decode(answer.encode(ctx.api_version), ctx.api_version)  # type: ignore[union-attr]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_client_makes_a_token_of_its_own(version: int) -> None:
    made = world()
    answer = ask(context(made, version), CREATE)
    assert (answer.error_code, answer.principal_type, answer.principal_name) == (0, "User", "ann")
    assert answer.token_requester_principal_name == ("ann" if version >= 3 else "")
    assert answer.hmac == SECRETS.hmac_of(answer.token_id)
    assert made.broker.image.tokens[answer.token_id].owner == "User:ann"


@pytest.mark.parametrize("request_", EACH, ids=lambda each: each.NAME)
@pytest.mark.parametrize(
    ("listener", "principal", "by_token", "refused"),
    [
        ("EXTERNAL", ANN, False, False),
        ("EXTERNAL", ANN, True, True),
        ("INTERNAL", ANONYMOUS, False, True),
        ("TLS", ANONYMOUS, False, True),
        ("TLS", ANN, False, False),
    ],
    ids=["login", "login by token", "plaintext", "tls without a certificate", "tls with a certificate"],
)
def test_only_a_client_that_authenticated_otherwise_may_ask(
    request_: Any, listener: str, principal: KafkaPrincipal, by_token: bool, refused: bool
) -> None:
    for version in (1, 2, 3):
        ctx = context(world(), version, listener, principal, token_authenticated=by_token)
        code = ask(ctx, request_).error_code
        assert (code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED) is refused
        assert code in ((E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,) if refused else (E.NONE, E.DELEGATION_TOKEN_NOT_FOUND))


@pytest.mark.parametrize("request_", EACH)
def test_a_client_in_groups_may_not_ask(request_: Any) -> None:
    """A login by its token would be in no groups, so a DENY for one of them would not count."""
    made = world()
    assert ask(context(made, principal=with_groups(ANN, frozenset({"Group:staff"}))), request_).error_code == (
        E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    )


def test_refusals_have_no_times_and_name_owner_and_requester() -> None:
    ctx = context(world(), 3, "INTERNAL")
    answer = ask(ctx, OTHERS)
    assert (answer.principal_name, answer.token_requester_principal_name) == ("carol", "ann")
    assert (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms, answer.hmac) == (-1, -1, -1, b"")
    for request in EACH[1:3]:
        assert ask(ctx, request).expiry_timestamp_ms == -1


@pytest.mark.parametrize("request_", EACH, ids=lambda each: each.NAME)
def test_tokens_are_off_without_a_secret(request_: Any) -> None:
    assert ask(context(world(on=False)), request_).error_code == E.DELEGATION_TOKEN_AUTH_DISABLED


def test_the_token_of_another_owner_needs_a_permission_on_that_user() -> None:
    made = world()
    access = made.broker.access = Allowing()
    refused = ask(context(made), OTHERS)
    assert (refused.error_code, made.broker.image.tokens) == (E.DELEGATION_TOKEN_AUTHORIZATION_FAILED, {})
    wanted = (AclOperation.CREATE_TOKENS, ResourceType.USER, "User:carol")
    assert access.loud == [wanted]
    assert ask(context(made), CREATE).error_code == 0, "nothing is asked for a token of one's own"
    access.change(wanted)
    answer = ask(context(made), OTHERS)
    assert (answer.error_code, answer.principal_name, answer.token_requester_principal_name) == (0, "carol", "ann")


@pytest.mark.parametrize("made_forwarded", [False, True])
def test_no_token_is_made_for_another_owner_while_groups_take_rights(made_forwarded: bool) -> None:
    """The owner may be in the group that a DENY names, and a client with the token would be in none."""
    made = world()
    access = made.broker.access = Allowing({(AclOperation.CREATE_TOKENS, ResourceType.USER, "User:carol")})
    denied = AccessControlEntry(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, "Group:staff", "*", AclOperation.READ, PermissionType.DENY
    )
    acls = {random_uuid(random.Random(1)): denied}
    made.broker.image = dataclasses.replace(made.broker.image, acls=acls)
    asker = Asker(ANN, "me", "10.0.0.9")
    answer = forwarded(made, asker, OTHERS) if made_forwarded else ask(context(made), OTHERS)
    assert (answer.error_code, made.broker.image.tokens) == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, {})
    assert ask(context(made), CREATE).error_code == 0, "one's own"
    access.change()
    assert ask(context(made), OTHERS).error_code == E.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "says nothing of ACLs"


def test_an_owner_with_a_name_has_a_type_and_renewers_are_users() -> None:
    made = world()
    nameless = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name="carol")
    assert ask(context(made), nameless).error_code == E.INVALID_REQUEST
    group = CreateDelegationTokenRequest(renewers=[CreatableRenewers("Group", "g")])
    assert ask(context(made), group).error_code == E.INVALID_PRINCIPAL_TYPE
    assert made.broker.image.tokens == {}


@pytest.mark.parametrize("kind", ["Role", "Group"])
@pytest.mark.parametrize("authorizer", [True, False])
def test_only_users_own_tokens(kind: str, authorizer: bool) -> None:
    """The ACL that makes a member of a role would include CREATE_TOKENS on it, and a DENY for the member would not count."""
    made = world()
    if authorizer:
        made.broker.access = Allowing({(AclOperation.CREATE_TOKENS, ResourceType.USER, f"{kind}:writers")})
    wanted = CreateDelegationTokenRequest(owner_principal_type=kind, owner_principal_name="writers", max_lifetime_ms=-1)
    assert ask(context(made), wanted).error_code == E.INVALID_PRINCIPAL_TYPE
    assert forwarded(made, Asker(ANN, "me", "10.0.0.9"), wanted).error_code == E.INVALID_PRINCIPAL_TYPE
    assert made.broker.image.tokens == {}


def test_a_token_is_renewed_and_ended_by_its_secret() -> None:
    made = world()
    token = ask(context(made), CREATE)
    renewed = ask(context(made, 2), RenewDelegationTokenRequest(token.hmac, 5000))
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, NOW_MS + 5000)
    stranger = context(made, principal=KafkaPrincipal("User", "eve"))
    assert ask(stranger, ExpireDelegationTokenRequest(token.hmac, -1)).error_code == E.DELEGATION_TOKEN_OWNER_MISMATCH
    assert ask(context(made), ExpireDelegationTokenRequest(token.hmac, -1)).error_code == 0
    assert made.broker.image.tokens == {}


def described(made: NodeWorld, *owners: str, every: bool = False, version: int = 3) -> list[str]:
    asked = None if every else [DescribeDelegationTokenOwner("User", name) for name in owners]
    answer = ask(context(made, version), DescribeDelegationTokenRequest(asked))
    assert answer.error_code == 0
    for each in answer.tokens:
        assert each.hmac == SECRETS.hmac_of(each.token_id)
        assert (each.token_requester_principal_name == "req") is (version >= 3)
    return [each.token_id for each in answer.tokens]


def many() -> NodeWorld:
    made = world()
    tokens = {
        "anns": DelegationToken("User:ann", "User:req", (), 1, 3, 2),
        "renewed-by-ann": DelegationToken("User:bob", "User:req", ("User:carol", "User:ann"), 1, 3, 2),
        "bobs": DelegationToken("User:bob", "User:req", (), 1, 3, 2),
        "carols": DelegationToken("User:carol", "User:req", (), 1, 3, 2),
    }
    made.broker.image = dataclasses.replace(made.broker.image, tokens=tokens)
    made.broker.access = Allowing()
    return made


@pytest.mark.parametrize("version", [1, 3])
def test_a_client_sees_the_tokens_that_it_owns_or_may_renew(version: int) -> None:
    made = many()
    assert described(made, every=True, version=version) == ["anns", "renewed-by-ann"]
    assert described(made, version=version) == [], "no owner is named"
    assert described(made, "ann", version=version) == ["anns", "renewed-by-ann"]
    assert described(made, "bob", "carol", version=version) == ["renewed-by-ann"]
    assert described(made, "eve", version=version) == []
    assert made.broker.access.loud == []  # type: ignore[union-attr]


def test_other_tokens_are_seen_by_permission_on_the_token_or_on_its_owner() -> None:
    made = many()
    access = made.broker.access
    assert isinstance(access, Allowing)
    access.change((AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "carols"))
    assert described(made, every=True) == ["anns", "renewed-by-ann", "carols"]
    access.change((AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob"))
    assert described(made, every=True) == ["anns", "renewed-by-ann", "bobs"]
    assert described(made, "carol") == ["renewed-by-ann"]
    made.broker.access = None
    assert described(made, every=True) == ["anns", "renewed-by-ann", "bobs", "carols"]


def forwarded(made: NodeWorld, asker: Asker, request: Any) -> Any:
    """The answer of a controller to a request in an Envelope, over a listener in plain text."""
    made.broker.apis = CONTROLLER_APIS
    answer = envelope(made.context(listener="INTERNAL"), sealed_request(asker, 3, request))
    return unsealed(run(answer) if isinstance(answer, Coroutine) else answer, 3, request)


def test_a_forwarded_client_is_known_by_its_principal_and_its_login() -> None:
    made = world()
    answer = forwarded(made, Asker(ANN, "me", "10.0.0.9"), CREATE)
    assert (answer.error_code, answer.principal_name) == (0, "ann")
    by_token = forwarded(made, Asker(ANN, "me", "10.0.0.9", token_authenticated=True), CREATE)
    assert by_token.error_code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize("authorizer", [False, True])
def test_the_controller_is_given_the_client_even_without_an_authorizer(authorizer: bool) -> None:
    made = world()
    made.broker.access = Allowing() if authorizer else None
    given: list[Any] = []
    submit = made.controller.submit

    def watched(handler: Any, request: Any, version: int | None = None, asker: Asker | None = None) -> Any:
        given.append((version, asker))
        return submit(handler, request, version, asker)

    made.controller.submit = watched  # type: ignore[method-assign]
    ask(context(made, 2), CREATE)
    assert given == [(2, Asker(ANN, "tester", "10.0.0.1", False))]


def test_controllers_do_not_describe() -> None:
    assert ApiKey.DESCRIBE_DELEGATION_TOKEN not in CONTROLLER_APIS
