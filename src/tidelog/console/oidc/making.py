"""A provider from its settings: reads the files that they name, and looks at the provider once before the console starts."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from tidelog.console.oidc.fetching import NoAnswer, asker
from tidelog.console.oidc.metadata import Unfit
from tidelog.console.oidc.provider import Provider
from tidelog.console.oidc.settings import OidcSettings
from tidelog.model.errors import ConfigError

MAX_SECRET = 4096


def made(settings: OidcSettings, now_ms: Callable[[], int]) -> Provider:
    """ConfigError for files that cannot be used."""
    try:
        tls = ssl.create_default_context(cafile=settings.authority_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"oidc: authority_file {settings.authority_file} cannot be used: {error}.") from None
    return Provider(settings, None if settings.secret_file is None else _secret(settings.secret_file), asker(tls), now_ms)


def looked_at(settings: OidcSettings) -> str | None:
    """Asks for the provider's metadata. ConfigError when it is the wrong provider, or cannot be used; a text when it does not
    answer, which may be over at the first login."""
    try:
        asyncio.run(made(settings, lambda: 0).metadata())
    except Unfit as error:
        raise ConfigError(f"oidc: {error}.") from None
    except NoAnswer as error:
        return f"there are no logins by {settings.issuer} now: {error}"
    return None


def _secret(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            found = file.read(MAX_SECRET + 1).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"oidc: client_secret_file {path} cannot be read: {error}.") from None
    if not found or len(found) > MAX_SECRET or not found.isprintable():
        raise ConfigError(f"oidc: client_secret_file {path} must hold the secret, in one line.")
    return found
