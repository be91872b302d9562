"""SCRAM credentials of users for ``configs``: ``--add-config 'SCRAM-SHA-512=[iterations=8192,password=...]'`` (KIP-554).

The password stays here: the broker gets the salted password. Lines are those of Kafka's tool.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidelog.cli import refusal
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.config_entities import Named
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.cli.broker_connection import Session
    from tidelog.cli.columns import Row

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
KEYS = frozenset({"iterations", "password", "salt", "saltedpassword"})
SALT_BYTES = 24
_NOT_FOUND = 91


def are_credentials(entities: Sequence[Named], names: Sequence[str]) -> bool:
    """Whether a change is about credentials. CommandFailed when it mixes them with quotas, or is not about one user."""
    found = [name for name in names if name in MECHANISMS]
    if not found or [each.kind for each in entities] != ["users"]:
        return False
    others = [name for name in names if name not in MECHANISMS]
    if others and set(others) <= KEYS:
        raise CommandFailed(
            f"A credential stands in brackets, which are missing or not closed: {found[0]}=[iterations=8192,password=...]"
        )
    if others:
        raise CommandFailed("Change quotas and SCRAM credentials of a user in two commands.")
    if not entities[0].name:
        raise CommandFailed("A SCRAM credential belongs to one user: name it with --entity-name.")
    return True


def alter(session: Session, user: str, add: Mapping[str, str], delete: Sequence[str]) -> None:
    """Sends one request. CommandFailed for a credential that cannot be read, or when the broker refuses."""
    from tidelog.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )
    from tidelog.security.scram_text import parse_scram

    upsertions = []
    for name, text in add.items():
        try:
            given = parse_scram(f"{name}=[{text}]", secrets.token_bytes(SALT_BYTES), name, named=False)
        except ConfigError as problem:
            raise CommandFailed(str(problem)) from problem
        upsertions.append(ScramCredentialUpsertion(user, given.mechanism, given.iterations, given.salt, given.salted))
    deletions = [ScramCredentialDeletion(user, MECHANISMS.index(name) + 1) for name in delete]
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    for result in session.ask(request).results:
        refusal.check(result.error_code, result.error_message)
    print(f"Completed updating config for user {user}.")


def describe(session: Session, entities: Sequence[Named], *, silent: bool) -> list[Row]:
    """Prints a line for each user with credentials, unless ``silent``; returns them as values. Empty unless users are asked."""
    from tidelog.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

    if [each.kind for each in entities] != ["users"] or entities[0].name == "":
        return []
    name = entities[0].name
    request = DescribeUserScramCredentialsRequest(users=None if name is None else [UserName(name=name)])
    response = session.ask(request)
    refusal.check(response.error_code, response.error_message)
    found: list[Row] = []
    for user in response.results:
        if user.error_code == _NOT_FOUND:
            continue
        refusal.check(user.error_code, user.error_message)
        infos = [(MECHANISMS[each.mechanism - 1], each.iterations) for each in user.credential_infos]
        if not silent:
            texts = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in infos)
            print(f"SCRAM credential configs for user-principal '{user.user}' are {texts}")
        found.append(
            {
                "entities": [{"entityType": "users", "entityName": user.user}],
                "configs": [{"name": mechanism, "value": f"iterations={iterations}"} for mechanism, iterations in infos],
            }
        )
    return found
