"""The settings of the authorizer: ``authorizer.class.name`` and what StandardAuthorizer reads (KIP-801).

Java classes are not run: the class name turns tidelog's own authorizer on, which decides as Apache Kafka's does. ``super.users``
and ``allow.everyone.if.no.acl.found`` are in no table of Kafka's, so DescribeConfigs shows their names only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from tidelog.model.errors import ConfigError

AUTHORIZER: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOW_WITHOUT_ACL: Final = "allow.everyone.if.no.acl.found"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class AuthorizerSettings(NamedTuple):
    """What decides beside the ACLs; the same on every node, or nodes decide differently."""

    super_users: tuple[tuple[str, str], ...]
    """(type, name) of principals that may do everything."""
    allow_without_acl: bool
    """Whether a resource without any ACL is open to every principal."""


def authorizer_settings(given: Mapping[str, str]) -> AuthorizerSettings | None:
    """The settings of the authorizer; None for a node without one. ConfigError says what to change."""
    name = given.get(AUTHORIZER, "").strip()
    if not name:
        return None
    if name != STANDARD_AUTHORIZER:
        raise ConfigError(
            f"{AUTHORIZER} is {name}, but Java classes are not run. Set {STANDARD_AUTHORIZER} for ACLs, or leave it empty "
            "to allow everything."
        )
    return AuthorizerSettings(_super_users(given.get(SUPER_USERS, "")), _allow_without_acl(given.get(ALLOW_WITHOUT_ACL, "false")))


def _super_users(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for each in filter(None, (part.strip() for part in text.split(";"))):
        kind, colon, name = each.partition(":")
        if not colon or not kind:
            raise ConfigError(
                f"{SUPER_USERS} holds {each!r}, but must hold Type:name, such as User:{each.strip(':')}, several of them "
                "separated by semicolons."
            )
        found.append((kind, name))
    return tuple(dict.fromkeys(found))


def super_users_warning(given: Mapping[str, str]) -> str:
    """A warning for users that commas seem to separate, which makes one user of them, as in Kafka; else empty."""
    text = given.get(SUPER_USERS, "")
    separated = re.sub(r"\s*,\s*(?=User:)", ";", text)
    if separated == text:
        return ""
    return f"{SUPER_USERS} is {text}, where a comma is part of a user's name. Separate users with semicolons: {separated}"


def _allow_without_acl(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ConfigError(f"{ALLOW_WITHOUT_ACL} is {text!r}, but must be true or false.")
    return word == "true"
