"""An identity provider on this machine: tokens for nodes (client credentials of OAuth 2) and the keys that sign them, over HTTPS.

with TokenIssuer(tmp_path, {"node-1": "secret"}, life_s=20) as issuer:
    issuer.down()
    issuer.up()
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from joserfc import jws
from joserfc.jwk import ECKey

from tests.certificates import Authority
from tests.interop.nodes import free_ports

ALGORITHM = "ES256"
AUDIENCE = "the-cluster"
BEGINNING_OF_TOKENS = "eyJ"
"""Of every JWT: the begin of a JSON object in base64."""


class TokenIssuer:
    """See the module. ``secrets``: of the clients, by their ids, which are the claim ``sub`` of their tokens."""

    def __init__(self, folder: Path, secrets: Mapping[str, str], life_s: float) -> None:
        self.secrets, self.life_s = dict(secrets), life_s
        self.granted: Counter[str] = Counter()
        """How many tokens each client got."""
        self.broken = False
        """Answers every request with status 503."""
        authority = Authority("authority of the provider")
        self.authority = folder / "provider.pem"
        """Whom to trust at the endpoints."""
        self.authority.write_text(authority.pem)
        pair = folder / "provider-pair.pem"
        pair.write_text(authority.issue("provider", "localhost", "127.0.0.1").both)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair)
        (self._port,) = free_ports(1)
        self._keys: list[ECKey] = []
        self._server: _Server | None = None
        self.rotate()

    @property
    def issuer(self) -> str:
        """The claim ``iss``."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def token_url(self) -> str:
        return f"{self.issuer}/token"

    @property
    def keys_url(self) -> str:
        return f"{self.issuer}/keys"

    def up(self) -> None:
        """Answers, from now on."""
        self._server = _Server(("127.0.0.1", self._port), self._handler(), self._context)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self) -> None:
        """Connections are refused, from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def rotate(self) -> None:
        """Signs with another key at once; the former one is still published."""
        self._keys.append(ECKey.generate_key("P-256", {"kid": f"key-{len(self._keys)}"}))

    def token(self, client: str) -> str:
        """A token of this client."""
        now = time.time()
        claims = {"sub": client, "scope": "kafka", "iat": int(now), "exp": int(now + self.life_s), "jti": f"{client}-{now}"}
        claims |= {"iss": self.issuer, "aud": AUDIENCE}
        key = self._keys[-1]
        return jws.serialize_compact({"alg": ALGORITHM, "kid": key.kid}, json.dumps(claims), key, algorithms=[ALGORITHM])

    def _granted(self, authorization: str, form: str) -> tuple[int, dict[str, Any]]:
        """The answer to a client that asks for a token."""
        with contextlib.suppress(ValueError):
            client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            if secret and self.secrets.get(client) == secret and parse_qs(form).get("grant_type") == ["client_credentials"]:
                self.granted[client] += 1
                return 200, {"access_token": self.token(client), "token_type": "Bearer", "expires_in": int(self.life_s)}
        return 401, {"error": "invalid_client"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path == "/keys"
                self.answer(
                    200 if found else 404, {"keys": [key.as_dict(private=False) for key in issuer._keys]} if found else {}
                )

            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                if self.path == "/token":
                    self.answer(*issuer._granted(self.headers.get("Authorization", ""), form))
                else:
                    self.answer(404, {})

            def answer(self, status: int, document: dict[str, Any]) -> None:
                body = b"" if issuer.broken else json.dumps(document).encode()
                self.send_response(503 if issuer.broken else status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.down()


class _Server(ThreadingHTTPServer):
    """Each handshake takes place in the thread of its connection."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        plain, peer = super().get_request()
        plain.settimeout(30)
        return self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), peer

    def handle_error(self, *_: Any) -> None:
        """A client that went away."""
