"""A browser for the tests of the console: it speaks ASGI to an application, keeps its cookies, and shows its CSRF token."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import quote, urlencode

from tidelog.console.web.application import Application
from tidelog.console.web.context import State
from tidelog.console.web.starting import ClusterOption, Options, state_of
from tidelog.console.web.table import routes
from tidelog.http.passwords import hashed

SALT = b"0123456789abcdef"
PASSWORD = "correct horse"
HASH = hashed(PASSWORD, SALT)


@dataclass
class Reply:
    """A whole answer."""

    status: int
    headers: dict[str, str]
    cookies: list[str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def text(self) -> str:
        body = gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body
        return body.decode()

    @property
    def data(self) -> Any:
        assert self.status == 200, self.text
        return self.json["data"]

    @property
    def lines(self) -> list[dict[str, Any]]:
        assert self.status == 200, self.text
        return [json.loads(line) for line in self.text.splitlines()]


@dataclass
class Browser:
    """``base``: the path that the console is served under. ``until``: leaves a stream when a line satisfies it."""

    application: Application
    base: str = "/"
    host: str = "localhost:8080"
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        until: Callable[[dict[str, Any]], bool] | None = None,
    ) -> Reply:
        found = Reply(0, {}, [], b"")
        gone = asyncio.Event()
        given = {"host": self.host, "accept-encoding": "gzip", **(headers or {})}
        if self.cookies:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        raw = (self.base + path).encode()
        scope = {
            "type": "http",
            "method": method,
            "path": raw.decode(),
            "raw_path": raw,
            "query_string": urlencode(query or []).encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
            "client": ("127.0.0.1", 50_000),
        }
        pieces = [{"type": "http.request", "body": body or b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            if pieces:
                return pieces.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                found.status = message["status"]
                for name, value in message["headers"]:
                    if name == b"set-cookie":
                        found.cookies.append(value.decode())
                    found.headers[name.decode()] = value.decode("latin-1")
                return
            found.body += message.get("body", b"")
            for line in message.get("body", b"").splitlines() if until is not None else ():
                if until(json.loads(line)):
                    gone.set()

        await self.application(scope, receive, send)
        self._keep(found.cookies)
        return found

    async def get(self, path: str, /, *more: tuple[str, str], **query: str) -> Reply:
        return await self.ask("GET", f"api/v1/{path}", query=[*query.items(), *more])

    async def post(self, path: str, body: Any, **headers: str) -> Reply:
        given = {"content-type": "application/json", "x-csrf-token": self.csrf, **headers}
        return await self.ask("POST", f"api/v1/{path}", body=json.dumps(body).encode(), headers=given)

    async def session(self) -> Any:
        found = (await self.get("session")).json
        self.csrf = found["csrf"]
        return found

    async def login(self, user: str, password: str = PASSWORD) -> Reply:
        await self.session()
        reply = await self.post("login", {"user": user, "password": password})
        if reply.status == 200:
            self.csrf = reply.json["csrf"]
        return reply

    async def stream(
        self, path: str, until: Callable[[dict[str, Any]], bool] | None = None, **query: str
    ) -> list[dict[str, Any]]:
        reply = await self.ask("GET", f"api/v1/{path}", query=list(query.items()), until=until)
        return reply.lines

    def _keep(self, cookies: list[str]) -> None:
        for text in cookies:
            for name, morsel in SimpleCookie(text).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value


def users(**roles: list[str]) -> tuple[str, str]:
    """A users' file: each user has the password and these roles; the roles are below."""
    everything = {"topics": ["*"], "groups": ["*"], "cluster": True}
    found = {
        "users": {name: {"password": HASH, "roles": own} for name, own in roles.items()},
        "roles": {
            "admin": [{"rights": ["view", "payload", "change"], **everything}],
            "viewer": [{"rights": ["view"], **everything}],
            "orders": [{"rights": ["view", "payload", "change"], "topics": ["orders*"], "groups": ["orders*"]}],
            "nothing": [{"rights": ["view"], "clusters": ["elsewhere"]}],
        },
        "masks": [{"topics": ["people*"], "paths": ["value.mail", "headers.auth"], "except_roles": ["admin"]}],
    }
    return json.dumps(found), "users.json"


def console(bootstrap: str, job: Callable[[Browser], Awaitable[Any]], *, seen: list[str] | None = None, **options: Any) -> Any:
    """Run ``job`` with a browser of a console for this cluster. ``seen``: gets the lines of the audit."""

    async def run() -> Any:
        state = state_of(Options(**{"clusters": [ClusterOption("main", bootstrap, {})], **options}))
        if seen is not None:
            state.audit._write = seen.append
        try:
            browser = Browser(Application(state, routes()), state.base)
            await browser.session()
            return await job(browser)
        finally:
            await state.close()

    return asyncio.run(run())


def state_for(bootstrap: str = "localhost:1", **options: Any) -> State:
    return state_of(Options([ClusterOption("main", bootstrap, {})], **options))


def segment(name: str) -> str:
    return quote(name, safe="")
