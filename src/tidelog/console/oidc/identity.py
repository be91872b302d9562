"""The person whom a provider logged in, and the roles that the claims give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidelog.console.oidc.settings import OidcSettings

LEEWAY_S: Final = 30
"""How far the provider's clock may be away."""
MAX_NAME: Final = 200
MAX_VALUES: Final = 1000


class LoginRefused(Exception):
    """The login fails. ``code``: the reason that the browser gets; the text is for the log."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Identity:
    """A person with roles of the console. ``until_ms``: when the provider's word ends."""

    name: str
    subject: str
    roles: frozenset[str]
    until_ms: int


def identity_of(claims: Mapping[str, Any], settings: OidcSettings) -> Identity:
    """The person of checked claims. LoginRefused for one without a name or a role."""
    name = claims.get(settings.name_claim)
    if not is_name(name, MAX_NAME):
        raise LoginRefused("failed", f"the claim {settings.name_claim} is missing, or no text of 1 to {MAX_NAME} characters")
    if settings.name_claim == "email" and claims.get("email_verified") is not True:
        raise LoginRefused("failed", "the provider has not verified the address in the claim email")
    roles = {role for value in values_at(claims, settings.roles_claim) for role in settings.roles.get(value, ())}
    roles.update(settings.everyone)
    if not roles:
        raise LoginRefused("no-role", f"no claim gives {name} a role")
    return Identity(str(name), str(claims["sub"]), frozenset(roles), int((claims["exp"] + LEEWAY_S) * 1000))


def values_at(claims: Mapping[str, Any], path: Sequence[str]) -> list[str]:
    """The texts of a claim: one text, or a list; none where it is not there. LoginRefused where it cannot be read."""
    if not path:
        return []
    elsewhere = claims.get("_claim_names")
    if isinstance(elsewhere, dict) and path[0] in elsewhere:
        raise LoginRefused("failed", f"the token does not hold the claim {path[0]} but says where to ask for it")
    found: Any = claims
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    values = [found] if isinstance(found, str) else [] if found is None else found
    if not isinstance(values, list) or len(values) > MAX_VALUES or not all(isinstance(each, str) for each in values):
        raise LoginRefused("failed", f"the claim {'.'.join(path)} is not a text, or a list of at most {MAX_VALUES} texts")
    return values


def is_name(found: Any, longest: int) -> bool:
    """Whether it is a text that can be shown and logged."""
    return isinstance(found, str) and 0 < len(found) <= longest and found.isprintable() and found.strip() == found
