"""The users' file of the console: JSON with users, roles and masks. Unknown names are refused: no right rests on a typo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.console.access.rights import Access, Grant, Mask, Right
from tidelog.console.access.sessions import Session
from tidelog.console.oidc.settings import settings_of
from tidelog.http import passwords
from tidelog.model.errors import ConfigError

MAKER: Final = "tidelog console --hash-password"
_PARTS: Final = ("key", "value", "headers")


@dataclass(frozen=True, slots=True)
class User:
    """A user of the console, with the names of its roles."""

    name: str
    password_hash: str = field(repr=False)
    roles: frozenset[str]


class Users:
    """The users of a file."""

    def __init__(self, text: str, where: str) -> None:
        """ConfigError says what is wrong, and where."""
        try:
            found = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"{where} is not JSON: {error}.") from None
        top = _object(found, where, {"users", "roles", "masks", "oidc"})
        self._roles = {name: _grants(each, f"{where}, role {name}") for name, each in _named(top, "roles", where)}
        self._users = {name: self._user(name, each, where) for name, each in _named(top, "users", where)}
        masks = top.get("masks", [])
        if not isinstance(masks, list):
            raise ConfigError(f"{where}: masks must be a list.")
        self._masks = tuple(self._mask(each, f"{where}, mask {number}") for number, each in enumerate(masks, 1))
        self.oidc = settings_of(top["oidc"], f"{where}, oidc", self._roles) if "oidc" in top else None
        """The provider that logs people in; None: passwords alone do."""
        if not self._users and self.oidc is None:
            raise ConfigError(f"{where} has no users.")

    @property
    def have_passwords(self) -> bool:
        """Whether anyone logs in by password."""
        return bool(self._users)

    def find(self, name: str) -> User | None:
        """The user with this name."""
        return self._users.get(name)

    def access(self, session: Session, *, read_only: bool) -> Access:
        """What the user of the session may do."""
        user = self.find(session.user)
        roles = session.roles if session.roles is not None else frozenset() if user is None else user.roles
        grants = [grant for role in sorted(roles) for grant in self._roles[role]]
        return Access(grants, self._masks, roles, read_only)

    def _user(self, name: str, found: Any, where: str) -> User:
        place = f"{where}, user {name}"
        entry = _object(found, place, {"password", "roles"})
        stored, roles = entry.get("password"), _texts(entry.get("roles"), f"{place}: roles")
        if not isinstance(stored, str):
            raise ConfigError(f"{place} has no password; {MAKER} makes one.")
        passwords.check_form(stored, place, MAKER)
        self._check_roles(roles, place)
        return User(name, stored, frozenset(roles))

    def _mask(self, found: Any, where: str) -> Mask:
        entry = _object(found, where, {"clusters", "topics", "paths", "except_roles"})
        exempt = _texts(entry.get("except_roles", []), f"{where}: except_roles")
        self._check_roles(exempt, where)
        paths = tuple(tuple(path.split(".")) for path in _texts(entry.get("paths"), f"{where}: paths"))
        for path in paths:
            if path[0] not in _PARTS or not all(path):
                raise ConfigError(f"{where}: {'.'.join(path)!r} must begin with key, value or headers: value.card.number.")
        topics = _texts(entry.get("topics"), f"{where}: topics")
        return Mask(topics, paths, _texts(entry.get("clusters", ["*"]), f"{where}: clusters"), frozenset(exempt))

    def _check_roles(self, roles: tuple[str, ...], where: str) -> None:
        unknown = sorted(set(roles) - set(self._roles))
        if unknown:
            raise ConfigError(f"{where}: there is no role {unknown[0]}.")


def _grants(found: Any, where: str) -> tuple[Grant, ...]:
    if not isinstance(found, list) or not found:
        raise ConfigError(f"{where} must be a list of grants.")
    return tuple(_grant(each, f"{where}, grant {number}") for number, each in enumerate(found, 1))


def _grant(found: Any, where: str) -> Grant:
    entry = _object(found, where, {"rights", "clusters", "topics", "groups", "cluster"})
    rights = _texts(entry.get("rights"), f"{where}: rights")
    try:
        known = frozenset(Right(each) for each in rights)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}; rights are {', '.join(each.value for each in Right)}.") from None
    cluster = entry.get("cluster", False)
    if not isinstance(cluster, bool):
        raise ConfigError(f"{where}: cluster must be true or false.")
    if not known:
        raise ConfigError(f"{where} gives no rights.")
    return Grant(
        known,
        _texts(entry.get("clusters", ["*"]), f"{where}: clusters"),
        _texts(entry.get("topics", []), f"{where}: topics"),
        _texts(entry.get("groups", []), f"{where}: groups"),
        cluster,
    )


def _object(found: Any, where: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise ConfigError(f"{where} must be a JSON object.")
    unknown = sorted(set(found) - known)
    if unknown:
        raise ConfigError(f"{where}: {unknown[0]!r} is unknown; there are {', '.join(sorted(known))}.")
    return found


def _named(top: Mapping[str, Any], part: str, where: str) -> list[tuple[str, Any]]:
    found = top.get(part, {})
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: {part} must be an object of names.")
    return list(found.items())


def _texts(found: Any, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise ConfigError(f"{where} must be a list of texts.")
    return tuple(found)
