"""Who a client is: what authentication finds out, and what quotas and ACLs go by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tidelog.model.acl_groups import GROUP

USER = "User"
MOST_GROUPS: Final = 200
"""Of one client. As many as the largest identity providers put into a token."""
MAX_GROUP_CHARACTERS: Final = 256
_NONE: Final[frozenset[str]] = frozenset()


class KafkaPrincipal(NamedTuple):
    """Kafka's principal: a type, nearly always ``User``, and a name."""

    type: str
    name: str

    def __str__(self) -> str:
        """As ACLs and super.users name it."""
        return f"{self.type}:{self.name}"

    @property
    def groups(self) -> frozenset[str]:
        """The further principals for which ACLs count, such as ``Group:staff``."""
        return _NONE


class GroupedPrincipal(KafkaPrincipal):
    """The principal of a client that is in groups. It is equal to the same principal without groups: a user stays the same user
    when another token names other groups."""

    _groups: frozenset[str]

    def __new__(cls, type: str, name: str, groups: frozenset[str]) -> GroupedPrincipal:
        self = super().__new__(cls, type, name)
        self._groups = groups
        return self

    @property
    def groups(self) -> frozenset[str]:
        return self._groups


def with_groups(principal: KafkaPrincipal, groups: frozenset[str]) -> KafkaPrincipal:
    """The principal in these groups (see ``group_principals``)."""
    return GroupedPrincipal(principal.type, principal.name, groups) if groups else principal


def group_principals(names: Iterable[str]) -> frozenset[str]:
    """``Group:name`` for each name. ValueError, with the reason, for too many names and for a name that no group has.

    A client in groups that do not fit is refused: without one of its groups, a DENY of that group would not count.
    """
    found = frozenset(names)
    if len(found) > MOST_GROUPS:
        raise ValueError(f"{len(found)} groups are named; {MOST_GROUPS} are the most")
    for name in found:
        if len(name) > MAX_GROUP_CHARACTERS:
            raise ValueError(f"the name of a group has {len(name)} characters; {MAX_GROUP_CHARACTERS} are the most")
        if not name.strip() or name == "*" or any("\ud800" <= each <= "\udfff" for each in name):
            raise ValueError(f"{name!r} is not the name of a group")
    return frozenset(f"{GROUP}:{name}" for name in found)


ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")
"""A client that has not authenticated."""
