"""The ASGI application: content types, bounded bodies, logins, errors as JSON. No sockets."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import MutableMapping
from itertools import count
from typing import Any

import pytest

from tests.unit.registry.caller import INT
from tidelog.http.passwords import hashed
from tidelog.registry.registering import Rules
from tidelog.registry.rest.api import Api
from tidelog.registry.rest.schemas import About
from tidelog.registry.serving import http, logins
from tidelog.registry.serving.http import V1, Application
from tidelog.registry.serving.local import Local
from tidelog.registry.serving.logins import Logins
from tidelog.registry.serving.users import READ, WRITE, Users, parse_users
from tidelog.registry.state import State

MAX_BODY = 200


class Memory:
    """A node over a state without a topic."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def serve(self, call: Any) -> Any:
        outcome = call.answer()
        for key, value in outcome.records:
            self._state.replay(key, value)
        return outcome.answer


class Site:
    """Each login that is checked comes an hour after the last."""

    def __init__(self, users: Users | None = None, local: Local | None = None) -> None:
        state = State()
        self.api = Api(state, Rules(), About("c", "1"))
        checking = None if users is None else Logins(users, count(0, 4_000_000).__next__)
        self._application = Application(self.api, Memory(state), checking, MAX_BODY, local=local)  # type: ignore[arg-type]

    def __call__(
        self, method: str, target: str, body: bytes | list[bytes] = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        path, _, query = target.partition("?")
        parts = body if isinstance(body, list) else [body]
        self.read = 0
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            self.read += 1
            return {"type": "http.request", "body": parts[self.read - 1], "more_body": self.read < len(parts)}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        given = dict(headers or {})
        if not isinstance(body, list):
            given.setdefault("Content-Length", str(len(body)))
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        }
        asyncio.run(self._application(scope, receive, send))
        start, *contents = sent
        assert [each.get("more_body", False) for each in contents] == [True] * (len(contents) - 1) + [False]
        self.parts = len(contents)
        content = b"".join(each["body"] for each in contents)
        return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, content


REGISTER = "/subjects/s/versions"
BODY = json.dumps(INT).encode()


def _login(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def test_a_request_is_answered_with_json_and_its_id() -> None:
    status, headers, body = Site()("POST", REGISTER, BODY, {"X-Request-ID": "r1"})
    assert status == 200
    assert headers["content-type"] == V1
    assert headers["x-request-id"] == "r1"
    assert int(headers["content-length"]) == len(body)
    assert json.loads(body)["id"] == 1


def test_a_text_is_sent_as_it_is_and_nothing_with_204() -> None:
    site = Site()
    site("POST", REGISTER, BODY)
    assert site("GET", "/schemas/ids/1/schema")[2] == b'"int"'
    assert site("DELETE", "/contexts/.c")[::2] == (204, b"")
    assert site("HEAD", "/subjects")[::2] == (200, b"")


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", V1),
        ("*/*", V1),
        ("application/json", "application/json"),
        ("text/html, application/json;q=0.5", "application/json"),
        ("application/vnd.schemaregistry+json, application/json;q=0.9", "application/vnd.schemaregistry+json"),
        ("application/json;q=0.1, application/vnd.schemaregistry.v1+json", V1),
    ],
)
def test_the_client_chooses_the_type_of_the_answer(accept: str, wanted: str) -> None:
    assert Site()("GET", "/subjects", headers={"Accept": accept})[1]["content-type"] == wanted


def test_types_that_are_not_spoken_are_refused() -> None:
    site = Site()
    assert site("GET", "/subjects", headers={"Accept": "image/png"})[0] == 406
    assert site("POST", REGISTER, BODY, {"Content-Type": "text/xml"})[0] == 415
    for kind in (V1, "application/json; charset=utf-8", "application/octet-stream"):
        assert site("POST", REGISTER, BODY, {"Content-Type": kind})[0] == 200


def test_a_body_is_bounded_before_it_is_read() -> None:
    site = Site()
    status, headers, body = site("POST", REGISTER, b"", {"Content-Length": str(MAX_BODY + 1)})
    assert (status, json.loads(body)["error_code"], site.read) == (413, 413, 0)
    assert "connection" not in headers  # closed before the body was sent, it would be reset, and the answer lost
    assert site("POST", REGISTER, b"", {"Content-Length": "9" * 5000})[0] == 413
    assert site("POST", REGISTER, b"", {"Content-Length": "-1"})[0] == 400
    assert site("POST", REGISTER, [b"x" * 90] * 50)[0] == 413
    assert site.read == 3


def test_faults_are_json_and_do_not_show_what_happened_inside() -> None:
    site = Site()
    assert json.loads(site("GET", "/subjects/s/versions")[2])["error_code"] == 40401
    assert site("POST", REGISTER, b"{")[0] == 400
    assert site("GET", "/schemas/ids/1?" + "&".join(f"a{n}=1" for n in range(200)))[0] == 400

    async def broken(call: Any) -> Any:
        raise ZeroDivisionError("secret")

    site._application._node.serve = broken  # type: ignore[method-assign]
    status, _, body = site("GET", "/subjects")
    assert (status, json.loads(body)["error_code"]) == (500, 50001)
    assert b"secret" not in body


def test_unknown_fields_are_ignored_if_the_client_says_so() -> None:
    body = json.dumps(INT | {"new": 1}).encode()
    assert Site()("POST", REGISTER, body)[0] == 422
    assert Site()("POST", REGISTER, body, {"Confluent-Accept-Unknown-Properties": "true"})[0] == 200


def test_paths_are_routed_before_they_are_decoded() -> None:
    site = Site()
    assert site("POST", "/subjects/a%2Fb%3F/versions", BODY)[0] == 200
    assert json.loads(site("GET", "/subjects")[2]) == ["a/b?"]


def users() -> Users:
    lines = [f"{name}: {role}, {hashed(name + '1', b'0123456789abcdef')}" for name, role in (("ann", WRITE), ("bob", READ))]
    return Users(parse_users("\n".join(["# users", "", *lines])))


def test_every_route_needs_a_login_and_writes_need_the_role() -> None:
    site = Site(users())
    for route in site.api.routes:
        path = route.path.replace("{subject}", "s").replace("{version}", "1").replace("{id}", "1").replace("{guid}", "g")
        path = path.replace("{context}", ".c")
        status, headers, _ = site(route.method, path, BODY)
        assert (status, headers["www-authenticate"][:5], site.read) == (401, "Basic", 0), route
        assert site(route.method, path, BODY, _login("ann", "wrong"))[0] == 401
        assert site(route.method, path, BODY, _login("eve", "ann1"))[0] == 401
        status, _, body = site(route.method, path, BODY, _login("bob", "bob1"))
        assert (status == 403) is route.writes, route
        if route.writes:
            assert json.loads(body)["error_code"] == 40301
        assert site(route.method, path, BODY, _login("ann", "ann1"))[0] not in (401, 403)


@pytest.mark.parametrize("header", ["", "Basic", "Basic !!!", "Bearer x", "Basic " + "x" * 9000, "Basic /w=="])
def test_headers_that_are_no_login(header: str) -> None:
    assert Site(users())("GET", "/subjects", headers={"Authorization": header})[0] == 401


def test_a_page_of_another_site_registers_nothing() -> None:
    site = Site(local=Local())
    simple = {"Host": "localhost:8081", "Origin": "https://evil.example"}  # browsers send such a request without asking first
    assert site("POST", REGISTER, BODY, simple)[0] == 403
    assert site("GET", "/subjects", headers={"Host": "localhost:8081"})[::2] == (200, b"[]")


def test_a_login_for_which_there_is_no_room_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "MAX_WAITING", 0)
    status, headers, body = Site(users())("GET", "/subjects", headers=_login("ann", "ann1"))
    assert (status, headers["connection"], json.loads(body)["error_code"]) == (503, "close", 503)


def test_a_long_list_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    for number in range(5):
        site("POST", f"/subjects/s{number}/versions", BODY)
    whole = site("GET", "/schemas")
    assert "content-length" not in whole[1]
    assert site.parts == 2
    monkeypatch.setattr(http, "PART_BYTES", 100)
    assert site("GET", "/schemas") == whole
    assert site.parts > 3
    assert [each["subject"] for each in json.loads(whole[2])] == [f"s{number}" for number in range(5)]
    assert site("HEAD", "/schemas")[2] == b""
    assert json.loads(site("GET", "/schemas?subjectPrefix=none")[2]) == []
