"""The console as an ASGI application: every request passes one guard, and its route's one check of rights, before a handler runs.

Guard: the Host must be the console's own (against DNS rebinding), the request must come from its own pages (Sec-Fetch-Site,
Origin), a change shows the CSRF token. There is no CORS.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidelog.console.access.rights import Right
from tidelog.console.access.sessions import Session
from tidelog.console.web.answers import json_answer, problem_response, wrapped
from tidelog.console.web.audit import asked, outcome_of
from tidelog.console.web.context import COOKIE, Context, State
from tidelog.console.web.problems import Problem, problem_of
from tidelog.console.web.routing import Route, Routes
from tidelog.console.web.shared import in_a_hurry
from tidelog.console.web.static_files import csp
from tidelog.console.web.values import parsed, query_values

API: Final = "api/v1/"
CSRF_HEADER: Final = "x-csrf-token"
BODY_S: Final = 15.0
LONGEST_S: Final = 60.0
"""Of a handler that is not a stream."""
MAX_QUERY: Final = 16_384
THREADS: Final = 64
"""More than the gates let in, so that slow filters hold up no log-in and no page."""
_OWN_PAGES: Final = ("same-origin", "none")
_log = logging.getLogger("tidelog.console")


class Application:
    """Serves one console. uvicorn calls it."""

    def __init__(self, state: State, routes: Routes) -> None:
        self._state = state
        self._routes = routes
        self._headers = csp()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            response = await self._response(Request(scope, receive))
            for name, value in self._headers.items():
                response.headers[name] = value
            if self._state.secure:
                response.headers["Strict-Transport-Security"] = "max-age=31536000"
            await response(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "console"))
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._state.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _response(self, request: Request) -> Response:
        try:
            self._check_host(request)
            path = self._path_below(request)
            if path.startswith(API) or path == API.rstrip("/"):
                response = await self._api(request, path[len(API) :])
                response.headers["Cache-Control"] = "no-store"
                return response
            if request.method not in ("GET", "HEAD"):
                raise Problem(405, "pages are only read")
            return self._state.files.response(path, accepts_gzip=accepts_gzip(request))
        except Problem as problem:
            return problem_response(problem)

    # -- the guard -----------------------------------------------------------------------------------------------------------

    def _check_host(self, request: Request) -> None:
        if host_name(request.headers.get("host", "")) not in self._state.hosts:
            raise Problem(421, "this console is not served under that name; --public-url says which name it has")

    def _path_below(self, request: Request) -> str:
        raw = request.scope.get("raw_path") or request.scope["path"].encode("utf-8", "surrogatepass")
        path = raw.split(b"?", 1)[0].decode("ascii", "replace")
        base = self._state.base
        if path + "/" == base:
            return ""
        if not path.startswith(base):
            raise Problem(404, f"the console is served under {base}")
        return str(path[len(base) :])

    def _check_origin(self, request: Request) -> None:
        if request.headers.get("sec-fetch-site", "same-origin") not in _OWN_PAGES:
            raise Problem(403, "the request comes from a page of another site")
        origin = request.headers.get("origin")
        if origin is not None and origin_name(origin) != request.headers.get("host"):
            raise Problem(403, "the request comes from a page of another origin")

    def _check_csrf(self, request: Request, session: Session | None) -> None:
        csrf = self._state.csrf if session is None else session.csrf
        shown = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), csrf.encode()):
            raise Problem(403, "the header X-CSRF-Token is missing or old: load the page again")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Problem(400, "the body must be application/json")

    # -- the API -------------------------------------------------------------------------------------------------------------

    async def _api(self, request: Request, path: str) -> Response:
        route: Route | None = None
        context: Context | None = None
        try:
            if len(request.scope["query_string"]) > MAX_QUERY:
                raise Problem(413, f"a query has at most {MAX_QUERY} bytes")
            route, segments = self._routes.find(request.method, path)
            in_a_hurry.set("no-cache" in request.headers.get("cache-control", ""))
            if not route.from_elsewhere:
                self._check_origin(request)
            session = self._state.sessions.find(request.cookies.get(COOKIE), self._state.now_ms())
            access = self._state.access(session)
            if route.method != "GET":
                self._check_csrf(request, session)
            self._check_login(route, session)
            query = query_values(_given(request, route), route.query)
            body = await self._body(request, route)
            context = Context(self._state, request, access, session, segments, query, body)
            self._check_right(route, context)
            async with self._state.ending.limit(LONGEST_S):
                found = await route.handler(context)
            self._note(route, context, *outcome_of(found))
            if isinstance(found, Response):
                return found
            return await json_answer(wrapped(found, self._state.now_ms()), accepts_gzip=accepts_gzip(request))
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                _log.exception("%s %s failed", request.method, path[:200])
            if route is not None and context is not None:
                self._note(route, context, "refused" if problem.status in (400, 403, 409) else "failed", problem.detail)
            return problem_response(problem)

    def _check_login(self, route: Route, session: Session | None) -> None:
        if route.right is not None and self._state.users is not None and session is None:
            raise Problem(401, "log in first")

    def _check_right(self, route: Route, context: Context) -> None:
        if route.right is None:
            return
        if "c" not in context.segments:
            return  # the handler shows of each cluster what may be seen
        cluster = context.cluster
        if route.about is not None:
            context.demand(route.right, route.about, self._name(route, context))
        elif not context.access.may_anything(route.right, cluster.id):
            raise Problem(403, f"you do not have the right {route.right.value!r} on anything of this cluster")

    def _name(self, route: Route, context: Context) -> str:
        """What the right is asked on."""
        if route.name is None:
            return ""
        for values in (context.segments, context.query, context.body):
            if route.name in values:
                return str(values[route.name])
        raise Problem(400, f"{route.name} is missing")

    async def _body(self, request: Request, route: Route) -> Mapping[str, Any]:
        if route.method == "GET":
            return {}
        raw = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                async for piece in request.stream():
                    raw += piece
                    if len(raw) > route.largest_body:
                        raise Problem(413, f"the body has more than {route.largest_body} bytes")
        except (ClientDisconnect, TimeoutError):
            raise Problem(400, f"the body did not arrive within {BODY_S:.0f} s") from None
        try:
            found = json.loads(raw or b"{}")
        except (ValueError, RecursionError):
            raise Problem(400, "the body is no JSON, is nested too deeply, or has too long a number") from None
        if not isinstance(found, dict):
            raise Problem(400, "the body must be a JSON object")
        try:
            return parsed(found, route.body)
        except ValueError as error:
            raise Problem(400, str(error)) from None

    def _note(self, route: Route, context: Context, outcome: str, detail: str | None = None) -> None:
        """The audit of changes; reads of records note themselves, with what they showed."""
        if route.right is not Right.CHANGE or (context.body.get("dry_run") and outcome == "done"):
            return
        self._state.audit.add(
            "change",
            user=context.user,
            address=context.address,
            outcome=outcome,
            route=route.path,
            cluster=context.segments.get("c"),
            name=None if route.name is None else self._name(route, context),
            asked=asked(context.body),
            detail=detail,
        )


def _given(request: Request, route: Route) -> list[tuple[str, str]]:
    """The query. Another site that sends browsers here may add what it likes."""
    given = request.query_params.multi_items()
    return [each for each in given if each[0] in route.query] if route.from_elsewhere else given


def origin_name(origin: str) -> str:
    """The name and port in an Origin header; empty where it has none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def accepts_gzip(request: Request) -> bool:
    """Whether the browser takes gzip."""
    return "gzip" in request.headers.get("accept-encoding", "")


def host_name(host: str) -> str:
    """The name in a Host header, without its port, in lower case."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()
