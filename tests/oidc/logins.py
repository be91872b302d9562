"""Logins of the console by a provider that is not ours, node-oidc-provider, with its own pages (make console-oidc; Node 20)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

import pytest

from tests.interop.nodes import free_ports
from tests.unit.console.web.browser import users
from tidelog.console.web.context import COOKIE
from tidelog.testing import Broker

HERE = Path(__file__).parent
SECRET = "the secret of the client, of more than 32 characters"


class Page(HTMLParser):
    """The form of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "form":
            self.action = found.get("action") or ""
        elif tag in ("input", "button") and found.get("name"):
            self.fields.setdefault(str(found["name"]), found.get("value") or "")


class Person:
    """A browser with cookies of its own."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.jar = CookieJar(DefaultCookiePolicy())
        self.visited: list[str] = []
        self._opener = build_opener(HTTPCookieProcessor(self.jar), _Followed(self.visited))

    def open(self, url: str, form: dict[str, str] | None = None) -> str:
        self.visited.append(url)
        data = None if form is None else urlencode(form).encode()
        try:
            with self._opener.open(Request(url, data), timeout=60) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def api(self, path: str, body: dict[str, Any] | None = None, csrf: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "X-CSRF-Token": csrf}
        with self._opener.open(Request(f"{self.home}api/v1/{path}", data, headers), timeout=60) as answer:
            return json.loads(answer.read())

    def log_in(self, name: str, place: str = "") -> None:
        """Through the provider's own pages: name and password, then consent."""
        text = self.open(f"{self.home}api/v1/login/oidc?{urlencode({'to': place})}")
        for _ in range(2):
            page = Page(text)
            if not page.action or not urlsplit(self.visited[-1]).path.startswith("/interaction/"):
                break
            fields = {**page.fields, **({"login": name, "password": "x"} if "login" in page.fields else {})}
            text = self.open(urljoin(self.visited[-1], page.action), fields)

    @property
    def at(self) -> str:
        return self.visited[-1]

    @property
    def has_session(self) -> bool:
        return any(cookie.name == COOKIE for cookie in self.jar)


class _Followed(HTTPRedirectHandler):
    def __init__(self, visited: list[str]) -> None:
        self._visited = visited

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        self._visited.append(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextmanager
def provider(port: int, home: str, method: str) -> Iterator[None]:
    command = ["node", str(HERE / "provider.mjs"), str(port), home, SECRET, method]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def console(folder: Path, broker: Broker, port: int, issuer: str, method: str) -> Iterator[Path]:
    """A console with this provider; yields its audit."""
    oidc = {
        "issuer": issuer,
        "client_id": "tidelog-console",
        "scopes": ["openid", "groups"],
        "roles_claim": "groups",
        "roles": {"staff": ["viewer"]},
        "userinfo": True,
    }
    if method != "none":
        (folder / "secret").write_text(SECRET)
        oidc["client_secret_file"] = str(folder / "secret")
    file, audit = folder / "users.json", folder / "audit.jsonl"
    file.write_text(json.dumps({**json.loads(users()[0]), "oidc": oidc}))
    command = [sys.executable, "-m", "tidelog.cli.main", "console", "--bootstrap-server", broker.bootstrap_servers]
    options = ["--listen", f"127.0.0.1:{port}", "--public-url", f"http://localhost:{port}", "--users", str(file)]
    errors = folder / "errors"
    with errors.open("w") as written:
        process = subprocess.Popen(
            [*command, *options, "--audit-file", str(audit)], stdout=subprocess.PIPE, stderr=written, text=True
        )
        try:
            assert process.stdout is not None
            assert "is ready" in process.stdout.readline(), errors.read_text()
            yield audit
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("orders")
        yield found


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
def test_people_log_in_and_out(broker: Broker, tmp_path: Path, method: str) -> None:
    provider_port, console_port = free_ports(2)
    home = f"http://localhost:{console_port}/"  # another site than the provider's
    issuer = f"http://127.0.0.1:{provider_port}"
    with provider(provider_port, home, method), console(tmp_path, broker, console_port, issuer, method) as audit:
        ann = Person(home)
        assert ann.api("session")["logged_in"] is False
        ann.log_in("ann", "main/topics")
        assert ann.at == home + "main/topics"
        session = ann.api("session")
        assert (session["user"], session["rights"]) == ("ann", ["view"])
        assert [row["name"] for row in ann.api("clusters/main/topics")["data"]["rows"]] == ["orders"]

        callback = next(each for each in ann.visited if "/callback" in each)
        stranger = Person(home)
        stranger.open(callback)
        assert stranger.at == f"{home}?login=expired"
        assert not stranger.has_session

        eve = Person(home)
        eve.log_in("eve")
        assert eve.at == f"{home}?login=no-role"
        assert not eve.has_session

        ended = ann.api("logout", {}, session["csrf"])
        assert ended["logged_in"] is False
        page = Page(ann.open(ended["logout_url"]))
        assert page.action, "the provider asks whether to log out there, too"
        ann.open(urljoin(issuer, page.action), {**page.fields, "logout": "yes"})
        assert ann.at.partition("?")[0] == home
        assert [each for each in ann.visited if each.startswith(home)][-1].partition("?")[0] == home
    found = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(each["action"], each["outcome"]) for each in found] == [
        ("login", "done"),
        ("login", "refused"),
        ("login", "refused"),
        ("logout", "done"),
    ]


def test_a_provider_that_starts_again_with_other_keys_logs_people_in(broker: Broker, tmp_path: Path) -> None:
    provider_port, console_port = free_ports(2)
    home, issuer = f"http://localhost:{console_port}/", f"http://127.0.0.1:{provider_port}"
    with console(tmp_path, broker, console_port, issuer, "none"):
        person = Person(home)
        person.log_in("ann")
        assert person.at == f"{home}?login=unavailable"
        with provider(provider_port, home, "none"):
            person = Person(home)
            person.log_in("ann")
            assert person.has_session
        with provider(provider_port, home, "none"):
            for _ in range(60):  # the keys are fetched again at most once in ten seconds, and failures have to wait
                person = Person(home)
                person.log_in("ann")
                if person.has_session:
                    break
                time.sleep(1)
            assert person.has_session
