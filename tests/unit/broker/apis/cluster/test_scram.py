from __future__ import annotations

import dataclasses

import pytest

from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.apis.cluster.scram import alter_user_scram_credentials, describe_user_scram_credentials
from tidelog.metadata.image import ScramCredential
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from tidelog.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

CREDENTIAL = ScramCredential(b"salt", b"stored", b"server", 4096)
KNOWN = {("bob", 2): CREDENTIAL, ("alice", 2): CREDENTIAL._replace(iterations=8192), ("alice", 1): CREDENTIAL}
SHA_256, SHA_512 = 1, 2


def described(*users: str, every: bool = False) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    """By user: the error, and the mechanisms with their iterations."""
    world = NodeWorld()
    world.broker.image = dataclasses.replace(world.broker.image, scram=KNOWN)
    ctx = world.context()
    asked = None if every else [UserName(name) for name in users]
    response = describe_user_scram_credentials(ctx, DescribeUserScramCredentialsRequest(users=asked))
    written = type(response).decode(response.encode(0), 0)
    assert written == response
    return {
        each.user: (each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in written.results
    }


@pytest.mark.parametrize("every", [False, True])
def test_who_names_nobody_hears_of_all(every: bool) -> None:
    assert described(every=every) == {"alice": (0, [(SHA_256, 4096), (SHA_512, 8192)]), "bob": (0, [(SHA_512, 4096)])}


def test_a_user_without_credentials_is_not_found() -> None:
    assert described("carol", "bob") == {"carol": (ErrorCode.RESOURCE_NOT_FOUND, []), "bob": (0, [(SHA_512, 4096)])}


def test_a_user_named_twice_is_an_error_told_once() -> None:
    assert described("bob", "alice", "bob")["bob"] == (ErrorCode.DUPLICATE_RESOURCE, [])
    assert described("bob", "alice", "bob")["alice"][0] == ErrorCode.NONE


def test_a_change_is_decided_by_the_controller() -> None:
    world = NodeWorld()
    request = AlterUserScramCredentialsRequest(upsertions=[ScramCredentialUpsertion("alice", SHA_256, 4096, b"salt", b"salted")])
    response = run(alter_user_scram_credentials(world.context(), request))
    assert [(each.user, each.error_code) for each in response.results] == [("alice", 0)]
    assert ("alice", SHA_256) in world.broker.image.scram
