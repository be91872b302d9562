"""One provider: where to send browsers, and who came back with a code. Its metadata and keys are kept for an hour.

A token that names an unknown key has the keys fetched again, at most once in ten seconds: a provider may sign with a new key at
any time.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from tidelog.console.oidc.fetching import Ask, NoAnswer, Reply
from tidelog.console.oidc.id_token import check_token
from tidelog.console.oidc.identity import Identity, LoginRefused, identity_of
from tidelog.console.oidc.metadata import BASIC, POST, Metadata, Unfit, location, metadata_of
from tidelog.console.oidc.settings import OidcSettings
from tidelog.console.oidc.tickets import Ticket
from tidelog.security.jwt_signature import IssuerKeys, UnknownKey
from tidelog.security.oauthbearer import TokenRefused

KEPT_MS: Final = 3_600_000
LEAST_BETWEEN_MS: Final = 10_000
MAX_TOKEN: Final = 64 << 10


class Provider:
    """A provider of the users' file. Everything that it says is checked before it counts."""

    def __init__(self, settings: OidcSettings, secret: str | None, ask: Ask, now_ms: Callable[[], int]) -> None:
        """``secret``: what the file ``secret_file`` holds."""
        self.settings = settings
        self._secret = secret
        self._ask = ask
        self._now_ms = now_ms
        self._metadata: tuple[int, Metadata] | None = None
        self._keys: tuple[int, IssuerKeys] | None = None
        self._fetching = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """Its metadata, at most an hour old. NoAnswer, Unfit."""
        async with self._fetching:
            if self._metadata is None or not 0 <= self._now_ms() - self._metadata[0] < KEPT_MS:
                reply = await self._ask(location(self.settings))
                if reply.status >= 500:
                    raise NoAnswer(f"{location(self.settings)} answers with status {reply.status}")
                if reply.status != 200:
                    raise Unfit(f"{location(self.settings)} answers with status {reply.status}: is issuer right?")
                self._metadata = self._now_ms(), metadata_of(reply.body, self.settings)
            return self._metadata[1]

    async def login_url(self, ticket: Ticket, redirect: str) -> str:
        """Where the browser logs in. NoAnswer, Unfit."""
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(self.settings.scopes),
            "state": ticket.state,
            "nonce": ticket.nonce,
            "code_challenge": ticket.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query((await self.metadata()).authorization, query)

    def logout_url(self, token: str | None, home: str) -> str | None:
        """Where the browser ends its session at the provider, too; None where the provider has no such address. ``token``: the ID
        token of the login. ``home``: where the provider sends the browser afterwards."""
        if self._metadata is None or self._metadata[1].logout is None:
            return None
        query = {"client_id": self.settings.client_id, "post_logout_redirect_uri": home}
        return _with_query(self._metadata[1].logout, query if token is None else {"id_token_hint": token, **query})

    def check_issuer(self, stated: str, metadata: Metadata) -> None:
        """LoginRefused when a redirect names another issuer, or none where this one always does (RFC 9207)."""
        if stated != self.settings.issuer and (stated or metadata.states_issuer):
            raise LoginRefused("failed", f"the redirect is of the issuer {stated[:200]!r}")

    async def identity(self, code: str, ticket: Ticket, redirect: str) -> tuple[Identity, str]:
        """Who logged in, and the ID token that says so. LoginRefused, NoAnswer, Unfit."""
        metadata = await self.metadata()
        tokens = await self._exchanged(code, ticket, redirect, metadata)
        token = tokens.get("id_token")
        if not isinstance(token, str) or len(token) > MAX_TOKEN:
            raise LoginRefused("failed", f"the provider gave no ID token of at most {MAX_TOKEN} characters")
        claims = dict(await self._signed(token, metadata))
        check_token(claims, self.settings, ticket.nonce, self._now_ms())
        if metadata.userinfo is not None:
            further = await self._userinfo(metadata.userinfo, tokens.get("access_token"), claims["sub"])
            claims = {**further, **claims}
        return identity_of(claims, self.settings), token

    async def _exchanged(self, code: str, ticket: Ticket, redirect: str, metadata: Metadata) -> Mapping[str, Any]:
        """The tokens for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": ticket.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        secret = self._secret or ""
        if metadata.method == BASIC:
            pair = f"{quote_plus(self.settings.client_id)}:{quote_plus(secret)}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        else:
            form["client_id"] = self.settings.client_id
            if metadata.method == POST:
                form["client_secret"] = secret
        reply = await self._ask(metadata.token, body=urlencode(form).encode(), headers=headers)
        answer = _object(reply)
        if reply.status != 200:
            raise LoginRefused(
                "failed", f"the provider does not take the code: status {reply.status}, {answer.get('error')!r:.100}"
            )
        return answer

    async def _signed(self, token: str, metadata: Metadata) -> Mapping[str, Any]:
        """The claims of a token with a signature of the provider."""
        try:
            keys = await self._issuer_keys(metadata, KEPT_MS)
            try:
                claims = self._claims(keys, token)
            except UnknownKey:
                keys = await self._issuer_keys(metadata, LEAST_BETWEEN_MS)
                claims = self._claims(keys, token)
        except TokenRefused as error:
            raise LoginRefused("failed", f"the ID token is refused: {error}") from None
        return claims

    def _claims(self, keys: IssuerKeys, token: str) -> Mapping[str, Any]:
        if (used := algorithm(token)) not in self.settings.algorithms:
            raise LoginRefused("failed", f"the ID token is signed by {used[:20]!r}, which is not accepted")
        return keys.claims(token)

    async def _issuer_keys(self, metadata: Metadata, longest_ms: int) -> IssuerKeys:
        """The keys, at most that old. NoAnswer, Unfit."""
        async with self._fetching:
            if self._keys is None or not 0 <= self._now_ms() - self._keys[0] < longest_ms:
                reply = await self._ask(metadata.keys)
                if reply.status != 200:
                    raise NoAnswer(f"the provider's keys: status {reply.status}")
                try:
                    self._keys = self._now_ms(), IssuerKeys(reply.body)
                except ValueError as error:
                    raise Unfit(f"the provider's keys cannot be used: {error}") from None
            return self._keys[1]

    async def _userinfo(self, url: str, access: Any, subject: Any) -> Mapping[str, Any]:
        """Further claims about the same person."""
        if not isinstance(access, str) or not access.isascii() or not access.isprintable():
            raise LoginRefused("failed", "the provider gave no access token")
        reply = await self._ask(url, headers={"Authorization": f"Bearer {access}"})
        found = _object(reply)
        if reply.status != 200 or found.get("sub") != subject:
            raise LoginRefused("failed", f"userinfo answers with status {reply.status}, or about another person")
        return found


def algorithm(token: str) -> str:
    """What a token says that it is signed with; empty where it is no token."""
    head = token.partition(".")[0]
    try:
        found = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return ""
    return str(found.get("alg", "")) if isinstance(found, dict) else ""


def _object(reply: Reply) -> Mapping[str, Any]:
    try:
        found = json.loads(reply.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LoginRefused("failed", f"the provider's answer is no JSON object: status {reply.status}, {reply.kind[:50]!r}")
    return found


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"
