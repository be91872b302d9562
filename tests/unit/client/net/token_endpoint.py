"""A token endpoint over HTTPS, on a thread of the test; it serves documents as well."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.certificates import Authority
from tidelog.client.oauth import OAuth


class Endpoint:
    """Answers every request with ``status`` and ``body``, and keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.status, self.body, self.headers = 200, b"", {}
        self.make: Callable[[], bytes] = lambda: self.body
        self.asked: list[tuple[str, str, str]] = []
        authority = Authority()
        self.authorities = folder / "authority.pem"
        self.authorities.write_text(authority.pem)
        pair = folder / "pair.pem"
        pair.write_text(authority.issue("login", "localhost").both)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pair)
        self.server = HTTPServer(("127.0.0.1", 0), self._handler())
        self.server.socket = self.context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.asked.append((self.path, self.headers["Authorization"], body))
                self.answer()

            def do_GET(self) -> None:
                endpoint.asked.append((self.path, "", ""))
                self.answer()

            def answer(self) -> None:
                self.send_response(endpoint.status)
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(endpoint.make())

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def oauth(self, **changes: Any) -> OAuth:
        given = {"url": f"https://localhost:{self.server.server_port}/token?x=1", "client_id": "job", "client_secret": "hush"}
        return OAuth(**{**given, "scope": "read", "authorities": str(self.authorities), **changes})
