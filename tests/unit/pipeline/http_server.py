"""An HTTP server on a port of the system's choice, for tests that talk to another service."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class QuietHandler(BaseHTTPRequestHandler):
    """Says nothing on the screen."""

    def log_message(self, format: str, *args: object) -> None:
        pass


class HttpServer:
    """Serves from a thread until it is closed. ``url`` has no path."""

    def __init__(self, handler: type[QuietHandler]) -> None:
        self._server = HTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
