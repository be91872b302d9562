"""An OpenID provider on this machine for one client, over HTTP: logs its ``person`` in without asking, and can be made to lie.

with OidcProvider({"sub": "1", "groups": ["staff"]}) as provider:
    provider.change = {"aud": "another client"}
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit
from urllib.request import HTTPErrorProcessor, build_opener

from joserfc import jws
from joserfc.jwk import ECKey, OctKey

CLIENT, SECRET = "tidelog-console", "a secret: of + the client"
ALGORITHM = "ES256"


class OidcProvider:
    """See the module. ``change``: claims that differ in the next ID tokens, None for one that is left out. ``metadata``: the same
    of the discovery document."""

    def __init__(self, person: dict[str, Any]) -> None:
        self.person = person
        self.change: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.answer: tuple[int, bytes] | None = None
        """What the token endpoint answers, whatever was asked; None: what is right."""
        self.refuses: str | None = None
        """The error that browsers are sent back with."""
        self.key = self.new_key()
        self.published = [self.key]
        self.header: dict[str, Any] = {}
        """What differs in the head of ID tokens."""
        self.asked: list[str] = []
        """The paths of requests that are not a browser's."""
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @staticmethod
    def new_key() -> ECKey:
        return ECKey.generate_key("P-256", {"kid": secrets.token_hex(4)})

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def settings(self, secret_file: str | None = None, **changes: Any) -> dict[str, Any]:
        """The part ``oidc`` of a users' file."""
        found = {
            "issuer": self.issuer,
            "client_id": CLIENT,
            "roles_claim": "groups",
            "roles": {"staff": ["viewer"], "operators": ["admin"]},
            **changes,
        }
        return found if secret_file is None else {**found, "client_secret_file": secret_file}

    def visit(self, url: str) -> dict[str, str]:
        """A browser follows the link of a login: where it is sent back to, as ``location``, and the query there."""
        opener = build_opener(_Redirects)
        with opener.open(url, timeout=30) as answer:
            assert answer.status == 303, answer.read()
            location = answer.headers["Location"]
        return {"location": location.partition("?")[0], **dict(parse_qsl(urlsplit(location).query))}

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, **self.person, **self.change}
        claims = {name: value for name, value in claims.items() if value is not None}
        head = {"alg": ALGORITHM, "kid": self.key.kid, **self.header}
        text = json.dumps(claims)
        if head["alg"] == "none":
            return f"{_base64(json.dumps(head))}.{_base64(text)}."
        key: Any = self.key
        if head["alg"] == "HS256":  # the public key, which everybody knows, as the secret
            key = OctKey.import_key(json.dumps(self.key.as_dict(private=False)))
        return jws.serialize_compact(head, text, key, algorithms=[head["alg"]])

    def _discovery(self) -> dict[str, Any]:
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/logout",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _authorize(self, query: dict[str, str]) -> str:
        assert (query["response_type"], query["client_id"], query["code_challenge_method"]) == ("code", CLIENT, "S256")
        assert "openid" in query["scope"].split()
        back = {"state": query["state"], "iss": self.issuer, "session_state": "of a provider"}
        if self.refuses is not None:
            return f"{query['redirect_uri']}?{urlencode({**back, 'error': self.refuses})}"
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({**back, 'code': code})}"

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        asked = self._codes.pop(form.get("code", ""), None)
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        )
        if (
            asked is None
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        if not self._is_client(form, authorization):
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": "access", "token_type": "Bearer", "id_token": self.id_token(asked["nonce"])}

    def _is_client(self, form: dict[str, str], authorization: str) -> bool:
        methods = self._discovery().get("token_endpoint_auth_methods_supported")
        if methods == ["none"]:
            return form.get("client_id") == CLIENT and not authorization
        if methods == ["client_secret_post"]:
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        return (unquote_plus(name), unquote_plus(secret)) == (CLIENT, SECRET)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                if path == "/authorize":
                    self.send_response(303)
                    self.send_header("Location", provider._authorize(dict(parse_qsl(query))))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                provider.asked.append(path)
                documents: dict[str, Any] = {
                    "/.well-known/openid-configuration": provider._discovery(),
                    "/keys": {"keys": [key.as_dict(private=False) for key in provider.published]},
                }
                if self.headers["Authorization"] == "Bearer access":
                    documents["/userinfo"] = provider.person
                self.answer(200 if path in documents else 404, json.dumps(documents.get(path, {})).encode())

            def do_POST(self) -> None:
                provider.asked.append(self.path)
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                fields = {name: values[0] for name, values in parse_qs(form).items()}
                status, found = provider._token(fields, self.headers.get("Authorization", ""))
                self.answer(*(provider.answer or (status, json.dumps(found).encode())))

            def answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Redirects(HTTPErrorProcessor):
    """Every answer is one, redirects too."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
