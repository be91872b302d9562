"""A client's principal on its way from a broker to the active controller (KIP-590).

The bytes are those of Apache Kafka's DefaultKafkaPrincipalBuilder: the version, then DefaultPrincipalData. The groups of a client
are a tagged field of it, which Apache Kafka's nodes skip and never send. Both sides may rely on it: a sender of envelopes needs
CLUSTER_ACTION, with which it may name any client anyway.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.messages.default_principal_data import DefaultPrincipalData
from tidelog.protocol.primitives import (
    BROKEN,
    read_compact_string,
    read_tag,
    read_uvarint,
    write_compact_string,
    write_tag,
    write_uvarint,
)
from tidelog.security.principal import MOST_GROUPS, KafkaPrincipal, group_principals, with_groups

_VERSION: Final = 0
_GROUPS_TAG: Final = 29_801
"""Kafka numbers tags from 0 on. The value: a count, then the names of the groups as compact strings."""


class Forwarded(NamedTuple):
    """A client as a controller gets to know it."""

    principal: KafkaPrincipal
    token_authenticated: bool
    """Whether the client logged in with a delegation token."""


def sealed_principal(client: Forwarded) -> bytes:
    """The bytes of an envelope's principal."""
    principal = client.principal
    out = bytearray(_VERSION.to_bytes(2))
    DefaultPrincipalData(principal.type, principal.name, client.token_authenticated).encode_into(out, _VERSION)
    if principal.groups:
        value = bytearray()
        write_uvarint(value, len(principal.groups))
        for group in sorted(principal.groups):
            write_compact_string(value, group.partition(":")[2])
        out[-1] = 1  # the count of tags, which is the last byte without any
        write_tag(out, _GROUPS_TAG, value)
    return bytes(out)


def unsealed_principal(data: bytes | None) -> Forwarded:
    """The client of an envelope. ProtocolViolation when the principal cannot be read."""
    if data is None or int.from_bytes(data[:2]) != _VERSION:
        raise ProtocolViolation("the principal is of another version")
    body = memoryview(data)[2:]
    client = DefaultPrincipalData.decode(body, _VERSION)
    try:
        groups = group_principals(_groups(body))
    except (*BROKEN, ValueError) as error:
        raise ProtocolViolation(f"the groups of the principal cannot be read: {error}") from None
    return Forwarded(with_groups(KafkaPrincipal(client.type, client.name), groups), client.token_authenticated)


def _groups(body: memoryview) -> list[str]:
    _, pos = read_compact_string(body, 0)
    _, pos = read_compact_string(body, pos)
    tags, pos = read_uvarint(body, pos + 1)
    names = []
    for _ in range(tags):
        tag, start, pos = read_tag(body, pos)
        if tag != _GROUPS_TAG:
            continue
        count, at = read_uvarint(body, start)
        if count > MOST_GROUPS:
            raise ProtocolViolation(f"the principal is in {count} groups; {MOST_GROUPS} are the most")
        for _ in range(count):
            name, at = read_compact_string(body[:pos], at)
            names.append(name)
        if at != pos:
            raise ProtocolViolation("the groups of the principal do not fill their tag")
    return names
