"""Logins by a provider that are under way: tickets, and how many may come back at a time."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from tidelog.console.access.users import Users
from tidelog.console.oidc.provider import Provider
from tidelog.console.oidc.settings import CALLBACK, is_safe_url
from tidelog.console.oidc.tickets import Tickets
from tidelog.console.web.limits import Gate
from tidelog.http.guesses import Buckets, network_of
from tidelog.model.errors import ConfigError

MOST_AT_A_TIME: Final = 16
BURST, REFILL_MS = 20, 3_000
"""Of returns from the provider that fail, by address: each makes the console ask the provider."""


class SignIn:
    """The provider as this console uses it. ``redirect``: where it sends browsers back to; ``home``: the first page."""

    def __init__(self, provider: Provider, origin: str, base: str) -> None:
        self.provider = provider
        self.tickets = Tickets(secrets.token_bytes(32))
        self.home = f"{origin}{base}"
        self.redirect = f"{self.home}api/v1/{CALLBACK}"
        self.gate = Gate(MOST_AT_A_TIME, "log-ins")
        self._failures = Buckets(BURST, REFILL_MS)

    def attempt(self, address: str, now_ms: int) -> bool:
        """Whether a return from this address is looked at; it counts as failed."""
        network = network_of(address)
        if self._failures.wait_ms(network, now_ms):
            return False
        self._failures.take(network, now_ms)
        return True

    def succeeded(self, address: str) -> None:
        """The last return from there does not count."""
        self._failures.give_back(network_of(address))


def sign_in_of(users: Users | None, public_url: str | None, base: str, now_ms: Callable[[], int]) -> SignIn | None:
    """None where the users' file names no provider. ConfigError for a login that would be half configured."""
    if users is None or users.oidc is None:
        return None
    if public_url is None:
        raise ConfigError("login by OIDC needs --public-url: the provider sends browsers back there.")
    if not is_safe_url(public_url, over_http=True):
        raise ConfigError(
            f"login by OIDC needs https: --public-url {public_url} would send codes over the network unencrypted. Give "
            "--public-url https://NAME, with --tls-certificate and --tls-key or a proxy with TLS."
        )
    from tidelog.console.oidc.making import made

    parts = urlsplit(public_url)
    return SignIn(made(users.oidc, now_ms), f"{parts.scheme}://{parts.netloc}", base)
