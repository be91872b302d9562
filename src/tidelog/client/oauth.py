"""Where a client gets the tokens of OAUTHBEARER: a file, or an identity provider's token endpoint (RFC 6749, client credentials).

The names of the settings are those of Java's clients (KIP-768, KIP-1139), the identity may stand in ``sasl.jaas.config`` instead.
The request for a token and its answer are built and read here; ``client.net.bearer_tokens`` carries them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

from tidelog.config.listener_oauth import LOGIN_HANDLER, LOGIN_HANDLERS
from tidelog.model.errors import ConfigError

URL = "sasl.oauthbearer.token.endpoint.url"
HANDLER = LOGIN_HANDLER
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE = "sasl.oauthbearer.scope"
URL_ENCODED = "sasl.oauthbearer.header.urlencode"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
AUTHORITIES = "https.ca.location"
TEXTS = (URL, CLIENT_ID, CLIENT_SECRET, SCOPE, HANDLER, RETRIEVER, AUTHORITIES)
"""The settings that hold a text; ``URL_ENCODED`` is a flag."""
_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
_RETRIEVERS = {_PACKAGE + "DefaultJwtRetriever": "", _PACKAGE + "FileJwtRetriever": "file"}
_RETRIEVERS |= {_PACKAGE + "ClientCredentialsJwtRetriever": "https"}
MAX_TOKEN_CHARACTERS = 64 * 1024
MAX_ERROR_CHARACTERS = 200
_TOKEN = re.compile(r"[-A-Za-z0-9._~+/]+=*")


class NoToken(Exception):
    """There is no token to log in with; the text says why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class OAuth:
    """Where tokens come from: exactly one of ``supply``, ``file`` and ``url`` is set."""

    supply: Callable[[], str] | None = None
    file: str | None = None
    url: str | None = None
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    url_encoded: bool = False
    authorities: str | None = None
    """The file with the authorities of the endpoint's certificate; None: the system's."""


class Grant(NamedTuple):
    """A token, and for how many seconds from now it holds, if that is known."""

    token: str = ""
    life_s: float | None = None


def oauth_settings(values: Mapping[str, Any], jaas: Mapping[str, str], supply: Callable[[], str] | None) -> OAuth:
    """``values``: the client's settings; ``jaas``: the options of ``sasl.jaas.config``; ``supply``: a function that makes tokens.

    ConfigError says what to set.
    """
    if supply is not None:
        if URL in values:
            raise ConfigError(f"{URL} is set, and a function makes the tokens: say one of them.")
        return OAuth(supply=supply)
    if values.get(HANDLER, LOGIN_HANDLERS[0]) not in LOGIN_HANDLERS:
        raise ConfigError(f"{HANDLER} names a Java class, which cannot be loaded; {LOGIN_HANDLERS[0]} is known by its name.")
    retriever = values.get(RETRIEVER, _PACKAGE + "DefaultJwtRetriever")
    if retriever not in _RETRIEVERS:
        raise ConfigError(f"{RETRIEVER} is {retriever!r}, and must be one of {', '.join(_RETRIEVERS)}.")
    url = values.get(URL, "")
    try:
        parts = urlsplit(url)
        usable = parts.scheme == "file" or (parts.scheme == "https" and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"OAUTHBEARER needs {URL}: an https: address that gives out tokens, or a file: one with a token.")
    if _RETRIEVERS[retriever] not in ("", parts.scheme):
        raise ConfigError(f"{RETRIEVER} is {retriever}, and {URL} begins with {parts.scheme}:.")
    if parts.scheme == "file":
        return OAuth(file=unquote(parts.path))
    client_id = values.get(CLIENT_ID) or jaas.get("clientId", "")
    secret = values.get(CLIENT_SECRET) or jaas.get("clientSecret", "")
    if not client_id or not secret:
        raise ConfigError(f"{URL} is set: it needs {CLIENT_ID} and {CLIENT_SECRET}.")
    scope = values.get(SCOPE) or jaas.get("scope", "")
    encoded = bool(values.get(URL_ENCODED, False))
    return OAuth(None, None, url, client_id, secret, scope, encoded, values.get(AUTHORITIES))


def grant_request(oauth: OAuth) -> tuple[dict[str, str], bytes]:
    """The headers and the body of the request for a token (RFC 6749, 4.4.2)."""
    name, secret = oauth.client_id, oauth.client_secret
    if oauth.url_encoded:
        name, secret = quote_plus(name), quote_plus(secret)
    identity = base64.b64encode(f"{name}:{secret}".encode()).decode()
    form = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {identity}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return headers, urlencode(form).encode()


def granted(document: bytes) -> Grant:
    """The token of an endpoint's answer. NoToken for an answer without one."""
    found = _fields(document)
    token = found.get("access_token") or found.get("id_token")
    if not isinstance(token, str):
        raise NoToken("the answer holds no access_token")
    life = found.get("expires_in")
    return Grant(checked(token), float(life) if isinstance(life, (int, float)) and not isinstance(life, bool) else None)


def refusal(document: bytes) -> str:
    """What an endpoint says with an error status: the fields of RFC 6749, 5.2, and nothing else."""
    found = _fields(document)
    said = [found[name] for name in ("error", "error_description") if isinstance(found.get(name), str)]
    return ": ".join(said)[:MAX_ERROR_CHARACTERS]


def checked(text: str) -> str:
    """A token without the white space around it. NoToken for a text that is none, which is not shown."""
    token = text.strip()
    if len(token) > MAX_TOKEN_CHARACTERS or not _TOKEN.fullmatch(token):
        raise NoToken("it is not a bearer token (RFC 6750)")
    return token


def life_s(token: str, now_s: float) -> float | None:
    """For how many seconds a JWT holds, by its claim ``exp``; None for another token. Its signature is the broker's business."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = _fields(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    end = claims.get("exp")
    return float(end) - now_s if isinstance(end, (int, float)) and not isinstance(end, bool) else None


def _fields(document: bytes) -> dict[str, Any]:
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
