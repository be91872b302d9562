"""Applies records to what authorizes and authenticates clients: ACLs, SCRAM credentials and delegation tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.metadata.image import DelegationToken, ScramCredential
from tidelog.metadata.overlay import Overlay
from tidelog.metadata.records import MetadataLogError
from tidelog.model.acl import AccessControlEntry, acl_of
from tidelog.model.ids import Uuid


class SecurityDelta:
    """ACLs by the id of their record, SCRAM credentials by user and mechanism, delegation tokens by token id."""

    __slots__ = ("acls", "scram", "tokens")

    def __init__(
        self,
        acls: Mapping[Uuid, AccessControlEntry],
        scram: Mapping[tuple[str, int], ScramCredential],
        tokens: Mapping[str, DelegationToken],
    ) -> None:
        self.acls: Overlay[Uuid, AccessControlEntry] = Overlay(acls)
        self.scram: Overlay[tuple[str, int], ScramCredential] = Overlay(scram)
        self.tokens: Overlay[str, DelegationToken] = Overlay(tokens)

    def set_acl(self, record: Any) -> None:
        self.acls.put(Uuid(record.id), acl_of(record, record.pattern_type))

    def remove_acl(self, record: Any) -> None:
        if Uuid(record.id) not in self.acls.now:
            raise MetadataLogError("RemoveAccessControlEntryRecord for an id that does not exist")
        self.acls.discard(Uuid(record.id))

    def set_scram(self, record: Any) -> None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self.scram.put((record.name, record.mechanism), credential)

    def remove_scram(self, record: Any) -> None:
        self.scram.discard((record.name, record.mechanism))

    def set_token(self, record: Any) -> None:
        token = DelegationToken(
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp=record.issue_timestamp,
            max_timestamp=record.max_timestamp,
            expiration_timestamp=record.expiration_timestamp,
        )
        self.tokens.put(record.token_id, token)

    def remove_token(self, record: Any) -> None:
        self.tokens.discard(record.token_id)
