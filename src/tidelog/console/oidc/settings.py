"""The part ``oidc`` of the users' file: which provider, and which of its claims give which roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from tidelog.model.addresses import is_loopback
from tidelog.model.errors import ConfigError

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""What ID tokens may be signed with: public keys only. ``none`` and secrets shared with the provider are never taken."""
LONGEST_SESSION_MINUTES: Final = 24 * 60
MAX_URL: Final = 2000
CALLBACK: Final = "login/oidc/callback"
"""Below the API: where the provider sends browsers back to."""
_KNOWN: Final = {
    "issuer",
    "client_id",
    "client_secret_file",
    "authority_file",
    "title",
    "scopes",
    "name_claim",
    "roles_claim",
    "roles",
    "everyone",
    "algorithms",
    "session_minutes",
    "userinfo",
}


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """A provider and its rules. ``secret_file`` None: a public client, which PKCE alone protects.

    ``roles_claim``: the path of the claim, empty for none. ``roles``: what each of its values gives. ``everyone``: roles of all
    whom the provider logs in. ``session_minutes`` None: sessions end with the ID token."""

    issuer: str
    client_id: str
    title: str = "single sign-on"
    secret_file: str | None = None
    authority_file: str | None = None
    scopes: tuple[str, ...] = ("openid",)
    name_claim: str = "sub"
    roles_claim: tuple[str, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    everyone: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ALGORITHMS
    session_minutes: int | None = None
    userinfo: bool = False

    @property
    def all_roles(self) -> set[str]:
        """The roles that it names."""
        return {role for given in (*self.roles.values(), self.everyone) for role in given}


def settings_of(found: Any, where: str, known_roles: Collection[str]) -> OidcSettings:
    """The settings in the file. ConfigError for a part that is missing, unknown, or would log no one in."""
    if not isinstance(found, dict):
        raise ConfigError(f"{where} must be a JSON object.")
    if unknown := sorted(set(found) - _KNOWN):
        raise ConfigError(f"{where}: {unknown[0]!r} is unknown; there are {', '.join(sorted(_KNOWN))}.")
    settings = OidcSettings(
        issuer=_issuer(_text(found, "issuer", where), where),
        client_id=_text(found, "client_id", where),
        title=_text(found, "title", where, "single sign-on"),
        secret_file=_text(found, "client_secret_file", where) if "client_secret_file" in found else None,
        authority_file=_text(found, "authority_file", where) if "authority_file" in found else None,
        scopes=_texts(found.get("scopes", ["openid"]), f"{where}: scopes"),
        name_claim=_text(found, "name_claim", where, "sub"),
        roles_claim=_path(found.get("roles_claim", []), f"{where}: roles_claim"),
        roles=_role_map(found.get("roles", {}), f"{where}: roles"),
        everyone=_texts(found.get("everyone", []), f"{where}: everyone"),
        algorithms=_texts(found.get("algorithms", list(ALGORITHMS)), f"{where}: algorithms"),
        session_minutes=_minutes(found.get("session_minutes"), where),
        userinfo=_flag(found.get("userinfo", False), f"{where}: userinfo"),
    )
    _check(settings, where, known_roles)
    return settings


def _check(settings: OidcSettings, where: str, known_roles: Collection[str]) -> None:
    if "openid" not in settings.scopes:
        raise ConfigError(f"{where}: scopes must have openid.")
    if bool(settings.roles) != bool(settings.roles_claim):
        raise ConfigError(f"{where}: roles_claim and roles belong together: the claim, and which roles its values give.")
    if not settings.all_roles:
        raise ConfigError(f"{where}: roles or everyone must give a role, or no one could log in.")
    if missing := sorted(settings.all_roles - set(known_roles)):
        raise ConfigError(f"{where}: there is no role {missing[0]}.")
    if not settings.algorithms or (wrong := sorted(set(settings.algorithms) - set(ALGORITHMS))):
        named = f"{wrong[0]} is not accepted" if settings.algorithms else "there is none"
        raise ConfigError(f"{where}: algorithms: {named}; there are {', '.join(ALGORITHMS)}.")


def _issuer(url: str, where: str) -> str:
    """The issuer as the provider states it, character by character: a slash at the end counts."""
    if not is_safe_url(url, over_http=True) or urlsplit(url).query:
        raise ConfigError(f"{where}: issuer {url} must be like https://login.example.org/realm (http on this machine only).")
    return url


def is_safe_url(url: Any, *, over_http: bool) -> bool:
    """Whether codes, secrets and tokens may be sent there: https, or ``over_http`` to this machine."""
    if not isinstance(url, str) or not 0 < len(url) <= MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and over_http and is_loopback(parts.hostname))


def _text(found: Mapping[str, Any], name: str, where: str, default: str | None = None) -> str:
    value = found.get(name, default)
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ConfigError(f"{where}: {name} {'must be a text' if name in found else 'is missing'}.")
    return value


def _texts(found: Any, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise ConfigError(f"{where} must be a list of texts.")
    return tuple(found)


def _path(found: Any, where: str) -> tuple[str, ...]:
    """A claim's name, or the names on the way to it: ``["realm_access", "roles"]``."""
    return (found,) if isinstance(found, str) and found else _texts(found, where)


def _role_map(found: Any, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(found, dict):
        raise ConfigError(f"{where} must be an object: a value of the claim, and the list of roles that it gives.")
    return {value: _texts(roles, f"{where}: {value}") for value, roles in found.items()}


def _minutes(found: Any, where: str) -> int | None:
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= LONGEST_SESSION_MINUTES:
        raise ConfigError(f"{where}: session_minutes must be from 1 to {LONGEST_SESSION_MINUTES}.")
    return found


def _flag(found: Any, where: str) -> bool:
    if not isinstance(found, bool):
        raise ConfigError(f"{where} must be true or false.")
    return found
