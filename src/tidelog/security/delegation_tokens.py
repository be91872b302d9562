"""The secrets of delegation tokens (KIP-48): derived from their ids, never stored.

A token is a record of the metadata log, without a secret. Its secret is the HMAC of its id under ``delegation.token.secret.key``,
which is the same on every node. A client logs in by SCRAM with the id as its name and the HMAC, as base64, as its password; the
credential of that password is derived when it is first asked for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidelog.config.options import Password
from tidelog.metadata.image import DelegationToken, ScramCredential
from tidelog.model.acl import AccessControlEntry
from tidelog.model.acl_groups import groups_take_rights, is_group_or_role
from tidelog.model.ids import Uuid
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.sasl import Authenticated
from tidelog.security.scram import MIN_ITERATIONS, Found, ScramMechanism, credential_of, salted_password

MAX_CREDENTIALS = 4096
"""Credentials kept in memory; each takes a few ms to derive."""
SALT_BYTES = 24


def principal_of(text: str) -> KafkaPrincipal:
    """The principal that a token's record names: ``User:alice``."""
    kind, _, name = text.partition(":")
    return KafkaPrincipal(kind, name)


def is_expired(token: DelegationToken, now_ms: int) -> bool:
    """Whether the token has ended: it cannot be renewed any more, and the next sweep removes it."""
    return token.expiration_timestamp < now_ms or token.max_timestamp < now_ms


def may_use(token: DelegationToken, principal: str) -> bool:
    """Whether it is the token's owner or one of its renewers, who may describe, renew and expire it without a permission."""
    return principal == token.owner or principal in token.renewers


def password_of(token_hmac: bytes) -> str:
    """The password with which a client logs in, as Kafka's tools print it."""
    return base64.b64encode(token_hmac).decode()


class TokenSecrets:
    """Derives secrets from the ids of tokens, and finds the token of a secret."""

    __slots__ = ("_acls", "_credentials", "_ids", "_key", "_known", "_seen", "_take_rights")

    def __init__(self, key: str) -> None:
        """``key``: ``delegation.token.secret.key``; not empty."""
        self._key = key.encode()
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        self._ids: dict[bytes, str] = {}
        self._known: set[str] = set()
        self._seen: object = None
        self._acls: object = None
        self._take_rights = False

    def hmac_of(self, token_id: str) -> bytes:
        """The secret of a token: 64 bytes."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def find(self, tokens: Mapping[str, DelegationToken], shown: bytes) -> str | None:
        """The id of the token with this secret; None for an unknown one.

        It is looked for by a digest of the secret, so that the time of the search tells nothing of other tokens' secrets.
        """
        if tokens is not self._seen:
            self._learn(tokens)
            self._seen = tokens
        token_id = self._ids.get(hashlib.sha256(shown).digest())
        if token_id is None or token_id not in tokens or not hmac.compare_digest(self.hmac_of(token_id), shown):
            return None
        return token_id

    def _learn(self, token_ids: Iterable[str]) -> None:
        current = set(token_ids)
        if len(self._known - current) > len(current):
            self._ids.clear()
            self._known.clear()
        for token_id in current - self._known:
            self._ids[hashlib.sha256(self.hmac_of(token_id)).digest()] = token_id
        self._known |= current

    def login(
        self,
        tokens: Mapping[str, DelegationToken],
        acls: Mapping[Uuid, AccessControlEntry],
        token_id: str,
        mechanism: ScramMechanism,
    ) -> Found | None:
        """The credential for a login by a token, and whom it authenticates and until when. ``acls``: those of the same image.

        None for an unknown token, for one that a group or a role owns, which Apache Kafka's controllers create, and for one that
        another principal made for its owner while groups take rights away: the owner may be in such a group, and the client that
        logs in for it would be in none.
        """
        token = tokens.get(token_id)
        if token is None or is_group_or_role((owner := principal_of(token.owner)).type):
            return None
        if token.requester != token.owner and self._groups_take_rights(acls):
            return None
        ends_ms = min(token.expiration_timestamp, token.max_timestamp)
        return self._credential(token_id, mechanism), Authenticated(owner, ends_ms, by_token=True)

    def _groups_take_rights(self, acls: Mapping[Uuid, AccessControlEntry]) -> bool:
        if acls is not self._acls:
            self._acls, self._take_rights = acls, groups_take_rights(acls.values())
        return self._take_rights

    def _credential(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        key = token_id, mechanism
        found = self._credentials.get(key)
        if found is None:
            # No token id has a space, so a salt is never the secret of a token.
            salt = hmac.digest(self._key, f"salt of {mechanism.title} {token_id}".encode(), "sha512")[:SALT_BYTES]
            salted = salted_password(mechanism, password_of(self.hmac_of(token_id)), salt, MIN_ITERATIONS)
            found = self._credentials[key] = credential_of(mechanism, salted, salt, MIN_ITERATIONS)
            if len(self._credentials) > MAX_CREDENTIALS:
                del self._credentials[next(iter(self._credentials))]
        return found


def secrets_of(key: Password | None) -> TokenSecrets | None:
    """By the value of ``delegation.token.secret.key``; None where delegation tokens are off."""
    return TokenSecrets(key.secret) if key is not None and key.secret else None


class TokenRules(NamedTuple):
    """What the active controller needs to decide about tokens; times in ms."""

    secrets: TokenSecrets
    max_lifetime_ms: int
    """``delegation.token.max.lifetime.ms``"""
    expiry_ms: int
    """``delegation.token.expiry.time.ms``"""
    check_interval_ms: int
    """``delegation.token.expiry.check.interval.ms``"""
