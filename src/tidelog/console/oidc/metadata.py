"""What a provider says about itself (OpenID Connect Discovery), and whether logins work with it as it is configured here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tidelog.console.oidc.settings import OidcSettings, is_safe_url

PATH: Final = "/.well-known/openid-configuration"
BASIC, POST, NONE = "client_secret_basic", "client_secret_post", "none"


class Unfit(Exception):
    """The provider is not the one of the settings, or lacks what a safe login needs."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Addresses of a provider. ``method``: how this client logs in at ``token``. ``states_issuer``: each of its redirects names
    it (RFC 9207)."""

    authorization: str
    token: str
    keys: str
    method: str
    userinfo: str | None
    logout: str | None
    states_issuer: bool


def location(settings: OidcSettings) -> str:
    """Where the metadata is."""
    return settings.issuer.rstrip("/") + PATH


def metadata_of(document: bytes, settings: OidcSettings) -> Metadata:
    """The metadata in a document. Unfit."""
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unfit(f"{location(settings)} is no JSON object")
    if found.get("issuer") != settings.issuer:
        raise Unfit(f"the provider calls itself {str(found.get('issuer'))[:200]!r}, and issuer is {settings.issuer!r}")
    methods = _listed(found, "code_challenge_methods_supported")
    if methods is not None and "S256" not in methods:
        raise Unfit("the provider does not take PKCE with S256")
    if "code" not in (_listed(found, "response_types_supported") or ("code",)):
        raise Unfit("the provider does not do the authorization code flow")
    algorithms = _listed(found, "id_token_signing_alg_values_supported")
    if algorithms is not None and not set(algorithms) & set(settings.algorithms):
        raise Unfit(f"the provider signs with {', '.join(algorithms)[:200]}, and none of these is accepted")
    if settings.userinfo and "userinfo_endpoint" not in found:
        raise Unfit("userinfo is true, and the provider has no userinfo_endpoint")
    return Metadata(
        _url(found, "authorization_endpoint", settings),
        _url(found, "token_endpoint", settings),
        _url(found, "jwks_uri", settings),
        _method(found, settings),
        _url(found, "userinfo_endpoint", settings) if settings.userinfo else None,
        _url(found, "end_session_endpoint", settings) if "end_session_endpoint" in found else None,
        found.get("authorization_response_iss_parameter_supported") is True,
    )


def _url(found: Mapping[str, Any], name: str, settings: OidcSettings) -> str:
    url = found.get(name)
    if not is_safe_url(url, over_http=urlsplit(settings.issuer).scheme == "http"):
        raise Unfit(f"the provider's {name} is {str(url)[:200]!r}, which is no https address")
    return str(url)


def _method(found: Mapping[str, Any], settings: OidcSettings) -> str:
    if settings.secret_file is None:
        return NONE
    taken = _listed(found, "token_endpoint_auth_methods_supported") or (BASIC,)
    for method in (BASIC, POST):
        if method in taken:
            return method
    raise Unfit(f"the provider takes the client's secret neither by {BASIC} nor by {POST}")


def _listed(found: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Unfit(f"the provider's {name} is no list of texts")
    return tuple(value)
