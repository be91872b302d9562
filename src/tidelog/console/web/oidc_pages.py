"""Login by a provider: the way there, and the way back. Both are visits of a browser, so refusals are pages, not problems."""

from __future__ import annotations

import hmac
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import RedirectResponse, Response

from tidelog.console.oidc.fetching import NoAnswer
from tidelog.console.oidc.identity import Identity, LoginRefused
from tidelog.console.oidc.metadata import Unfit
from tidelog.console.oidc.settings import CALLBACK
from tidelog.console.oidc.tickets import LONGEST_MS, Ticket, safe_place
from tidelog.console.web.context import Context
from tidelog.console.web.problems import Problem
from tidelog.console.web.routing import Route
from tidelog.console.web.session_pages import begin_session
from tidelog.console.web.values import Param, text

if TYPE_CHECKING:
    from tidelog.console.web.sign_in import SignIn

TICKET: Final = "tidelog_console_login"
MAX_CODE: Final = 4096
_TOKEN_BYTES: Final = 24
_log = logging.getLogger("tidelog.console.oidc")


async def begin(context: Context) -> Response:
    """Sends the browser to the provider, with a ticket to come back with."""
    sign_in, now_ms = _sign_in(context), context.state.now_ms()
    ticket = sign_in.tickets.begin(secrets.token_urlsafe(_TOKEN_BYTES), safe_place(context.query["to"]), now_ms)
    try:
        with sign_in.gate.enter():  # a provider that is slow must not hold all connections
            url = await sign_in.provider.login_url(ticket, sign_in.redirect)
    except (NoAnswer, Unfit) as error:
        return _refused(context, sign_in, "unavailable", str(error))
    except Problem as error:
        return _refused(context, sign_in, "busy", error.detail)
    response = RedirectResponse(url, 303)
    # Lax: the provider's redirect is a visit from another site, and has to bring it.
    response.set_cookie(TICKET, ticket.sealed, max_age=LONGEST_MS // 1000, samesite="lax", **_cookie(context))
    return response


async def returned(context: Context) -> Response:
    """The browser is back with a code: a session, and the page that was asked for."""
    sign_in = _sign_in(context)
    if not sign_in.attempt(context.address, context.state.now_ms()):
        return _refused(context, sign_in, "busy", "too many failed log-ins from this address")
    try:
        ticket = _ticket(context, sign_in)
        with sign_in.gate.enter():
            sign_in.provider.check_issuer(context.query["iss"], await sign_in.provider.metadata())
            sign_in.tickets.use(ticket)
            if context.query["error"] or not context.query["code"]:
                raise LoginRefused("denied", f"the provider says {context.query['error'][:200]!r}")
            who, token = await sign_in.provider.identity(context.query["code"], ticket, sign_in.redirect)
        return _begun(context, sign_in, ticket, who, token)
    except LoginRefused as error:
        return _refused(context, sign_in, error.code, str(error))
    except (NoAnswer, Unfit) as error:
        return _refused(context, sign_in, "unavailable", str(error))
    except Problem as error:
        return _refused(context, sign_in, "busy", error.detail)


def _begun(context: Context, sign_in: SignIn, ticket: Ticket, who: Identity, token: str) -> Response:
    state = context.state
    if state.users is None or state.users.find(who.name) is not None:
        raise LoginRefused("failed", f"the users' file has a user {who.name}, who logs in by password")
    minutes = sign_in.provider.settings.session_minutes
    until_ms = who.until_ms if minutes is None else state.now_ms() + minutes * 60_000
    response = RedirectResponse(sign_in.home + ticket.place, 303)
    _, cookie = begin_session(context, who.name, until_ms=until_ms, roles=who.roles, id_token=token)
    response.set_cookie(**cookie)
    response.delete_cookie(TICKET, samesite="lax", **_cookie(context))
    sign_in.succeeded(context.address)
    state.audit.add(
        "login", user=who.name, address=context.address, outcome="done", by="oidc", subject=who.subject, roles=sorted(who.roles)
    )
    return response


def _ticket(context: Context, sign_in: SignIn) -> Ticket:
    """The ticket that this browser was given, if it is the one that the provider's redirect belongs to."""
    ticket = sign_in.tickets.open(context.request.cookies.get(TICKET), context.state.now_ms())
    if ticket is None:
        raise LoginRefused("expired", "the browser has no ticket, or an old or used one")
    shown = context.query["state"].encode("utf-8", "surrogatepass")
    if not hmac.compare_digest(shown, ticket.state.encode()):
        raise LoginRefused("expired", "the redirect belongs to another log-in: its state is wrong")
    return ticket


def _sign_in(context: Context) -> SignIn:
    if context.state.sign_in is None:
        raise Problem(409, "this console has no login by OIDC")
    return context.state.sign_in


def _refused(context: Context, sign_in: SignIn, code: str, reason: str) -> Response:
    """The first page, which says so. The reason is for the operator; what is over a limit is not noted, it can be without end."""
    if code != "busy":
        context.state.audit.add("login", user=None, address=context.address, outcome="refused", by="oidc", detail=reason)
        _log.warning("a login by %s from %s is refused: %s", sign_in.provider.settings.issuer, context.address, reason)
    response = RedirectResponse(f"{sign_in.home}?login={code}", 303)
    response.delete_cookie(TICKET, samesite="lax", **_cookie(context))
    return response


def _cookie(context: Context) -> dict[str, Any]:
    return {"path": f"{context.state.base}api/v1/login/oidc", "secure": context.state.secure, "httponly": True}


ROUTES: Final = (
    Route("GET", "login/oidc", begin, None, query={"to": Param(text(2000), "")}),
    Route(
        "GET",
        CALLBACK,
        returned,
        None,
        query={
            "code": Param(text(MAX_CODE), ""),
            "state": Param(text(200), ""),
            "iss": Param(text(2000), ""),
            "error": Param(text(2000), ""),
        },
        from_elsewhere=True,
    ),
)
