from __future__ import annotations

from typing import Any

import pytest

from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import MAX_RECORDS_PER_REQUEST
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidelog.security.scram import ScramMechanism, credential_of, salted_password

SALTED = salted_password(ScramMechanism.SHA_256, "secret", b"salt", 4096)


def put(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name, mechanism, iterations, b"salt", SALTED)


def ask(cluster: Any, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> list[tuple[str, int]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    response: AlterUserScramCredentialsResponse = cluster.ask(QuorumController.alter_user_scram_credentials, request)
    response.encode(0)
    return [(each.user, each.error_code) for each in response.results]


def test_a_credential_is_stored_changed_and_deleted(cluster: Any) -> None:
    assert ask(cluster, put("alice")) == [("alice", 0)]
    stored = cluster.image.scram["alice", ScramMechanism.SHA_256]
    assert stored == credential_of(ScramMechanism.SHA_256, SALTED, b"salt", 4096)
    assert SALTED not in (stored.stored_key, stored.server_key)
    assert ask(cluster, put("alice", iterations=8192)) == [("alice", 0)]
    assert cluster.image.scram["alice", 1].iterations == 8192
    assert ask(cluster, ScramCredentialDeletion("alice", 1)) == [("alice", 0)]
    assert cluster.image.scram == {}


def test_users_are_answered_in_kafkas_order_each_for_itself(cluster: Any) -> None:
    ask(cluster, put("old"))
    found = ask(cluster, put("new"), put(""), ScramCredentialDeletion("old", 1), ScramCredentialDeletion("none", 1))
    assert found == [
        ("old", 0),
        ("new", 0),
        ("none", ErrorCode.RESOURCE_NOT_FOUND),
        ("", ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ]
    assert list(cluster.image.scram) == [("new", 1)]


def test_a_user_is_named_once_in_a_request_whatever_the_mechanisms(cluster: Any) -> None:
    assert ask(cluster, put("a", 1), put("a", 2), put("a", 1), put("b")) == [("b", 0), ("a", ErrorCode.DUPLICATE_RESOURCE)]
    ask(cluster, put("c"))
    assert ask(cluster, ScramCredentialDeletion("c", 1), put("c")) == [("c", ErrorCode.DUPLICATE_RESOURCE)]
    assert ("c", 1) in cluster.image.scram


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (put("a", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (put("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (put("a", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (put("a", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (put("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialDeletion("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialDeletion("a", 9), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_what_is_refused_writes_nothing(cluster: Any, change: Any, code: ErrorCode) -> None:
    assert ask(cluster, change) == [(change.name, code)]
    assert cluster.image.scram == {}


def test_too_many_changes_at_once_are_refused(cluster: Any) -> None:
    with pytest.raises(KafkaError) as refused:
        ask(cluster, *(put(f"u{number}") for number in range(MAX_RECORDS_PER_REQUEST + 1)))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
