"""Logging in and out, and what the browser has to know first."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Final

from starlette.responses import Response

from tidelog import __version__
from tidelog.console.access.rights import Right
from tidelog.console.access.sessions import Session
from tidelog.console.filters.evaluation import compiled
from tidelog.console.filters.tokens import MAX_CHARACTERS, FilterError
from tidelog.console.payloads.decoding import BY_SCHEMA
from tidelog.console.web.answers import json_response
from tidelog.console.web.context import COOKIE, Context
from tidelog.console.web.problems import Problem
from tidelog.console.web.routing import Route
from tidelog.console.web.values import Param, text
from tidelog.http import passwords

_NO_USER: Final = passwords.no_password(b"no user has this")


async def session(context: Context) -> Response:
    """The user who is logged in, what is allowed, which clusters there are."""
    return json_response(described(context, context.session), accepts_gzip=False)


def described(context: Context, found: Session | None) -> dict[str, Any]:
    """The session as the browser sees it."""
    state = context.state
    access = state.access(found)
    inside = state.users is None or found is not None
    return {
        "user": None if found is None else found.user,
        "login": state.users is not None,
        "passwords": state.users is not None and state.users.have_passwords,
        "oidc": None if state.sign_in is None else {"title": state.sign_in.provider.settings.title},
        "logged_in": inside,
        "csrf": state.csrf if found is None else found.csrf,
        "read_only": state.read_only,
        "version": __version__,
        "base_path": state.base,
        "rights": [right.value for right in access.rights()],
        "clusters": [
            {"id": each.id, "bootstrap": each.bootstrap} for each in state.clusters.values() if inside and access.sees(each.id)
        ],
        "limits": state.limits.shown(),
        "features": {
            "msgpack": True,
            **dict.fromkeys(BY_SCHEMA, inside and any(each.schemas is not None for each in state.clusters.values())),
            "export": True,
        },
    }


async def login(context: Context) -> Response:
    """A new session with a cookie. Problem: 401, or 429 while a name has to wait."""
    state, name = context.state, context.body["user"]
    if state.users is None:
        raise Problem(409, "this console runs without login")
    user = state.users.find(name)
    with state.logins.enter():
        wait_ms = state.guesses.attempt(name, context.address, state.now_ms())
        if wait_ms:
            raise Problem(429, "too many wrong passwords", retry_after_s=-(-wait_ms // 1000))
        stored = _NO_USER if user is None else user.password_hash
        async with state.proofs:
            right = await asyncio.to_thread(passwords.is_right, context.body["password"], stored)
    if user is None or not right:
        state.audit.add("login", user=name, address=context.address, outcome="refused")
        raise Problem(401, "the name or the password is wrong")
    state.guesses.succeeded(name, context.address)
    begun, cookie = begin_session(context, name)
    state.audit.add("login", user=name, address=context.address, outcome="done")
    response = json_response(described(context, begun), accepts_gzip=False)
    response.set_cookie(**cookie)
    return response


def begin_session(
    context: Context,
    user: str,
    *,
    until_ms: int | None = None,
    roles: frozenset[str] | None = None,
    id_token: str | None = None,
) -> tuple[Session, dict[str, Any]]:
    """A session of this browser, in place of one that it has, and its cookie. See ``Sessions.begin``."""
    state, now_ms = context.state, context.state.now_ms()
    state.sessions.end(context.request.cookies.get(COOKIE))
    token = secrets.token_urlsafe(32)
    begun = state.sessions.begin(
        token, user, secrets.token_urlsafe(32), now_ms, until_ms=until_ms, roles=roles, id_token=id_token
    )
    return begun, {
        "key": COOKIE,
        "value": token,
        "max_age": max(0, begun.until_ms - now_ms) // 1000,
        "path": state.base,
        "secure": state.secure,
        "httponly": True,
        "samesite": "strict",
    }


async def logout(context: Context) -> Response:
    """The session is over, here and in the browser. ``logout_url``: where it ends at the provider, too."""
    state = context.state
    ended = state.sessions.end(context.request.cookies.get(COOKIE))
    state.audit.add("logout", user=context.user, address=context.address, outcome="done")
    url = None
    if state.sign_in is not None and ended is not None and ended.roles is not None:
        url = state.sign_in.provider.logout_url(ended.id_token, state.sign_in.home)
    response = json_response({**described(context, None), "logout_url": url}, accepts_gzip=False)
    response.delete_cookie(COOKIE, path=state.base, secure=state.secure, httponly=True, samesite="strict")
    return response


async def check_filter(context: Context) -> dict[str, Any]:
    """Whether a filter can be used, and what is wrong where."""
    try:
        compiled(context.query["text"], context.state.now_ms())
    except FilterError as error:
        return {"ok": False, "error": error.detail, "at": error.at}
    return {"ok": True, "error": None, "at": None}


ROUTES: Final = (
    Route("GET", "session", session, None),
    Route(
        "POST",
        "login",
        login,
        None,
        body={
            "user": Param(text(200, least=1), required=True),
            "password": Param(text(passwords.MAX_PASSWORD, least=1), required=True),
        },
    ),
    Route("POST", "logout", logout, None),
    Route("GET", "filter/check", check_filter, Right.VIEW, query={"text": Param(text(2 * MAX_CHARACTERS), required=True)}),
)
