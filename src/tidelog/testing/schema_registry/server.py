"""``SchemaRegistry``: the API on a free port of this machine, in threads of the test's process.

What is registered and what is refused is decided by ``tidelog.registry``, as in ``tidelog registry``, over a state without a
topic. The HTTP is the standard library's; bodies are bounded before they are read. ``stop`` ends the connections that clients
keep.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlsplit

from tidelog import __version__
from tidelog.registry import reading
from tidelog.registry.errors import RegistryError, bad_request, invalid_level
from tidelog.registry.levels import LEVELS
from tidelog.registry.model import ALL_CONTEXTS, LATEST, compact
from tidelog.registry.registering import Rules
from tidelog.registry.rest.api import Api
from tidelog.registry.rest.requests import Request
from tidelog.registry.rest.schemas import About
from tidelog.registry.state import State

MAX_BODY = 8 << 20
IDLE_S = 600
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class SchemaRegistry:
    """For a ``with`` block, or between ``start`` and ``stop``; every method may be called from any thread.

    ``compatibility``: the level of subjects that have none, BACKWARD as Confluent's.
    """

    def __init__(self, *, port: int = 0, compatibility: str = "BACKWARD") -> None:
        self._port = port
        if compatibility.upper() not in LEVELS:
            raise invalid_level(compatibility, LEVELS)
        self._rules = Rules(compatibility.upper(), max_schema_bytes=MAX_BODY)
        self._server: _Server | None = None
        self._guard = threading.Lock()
        self._refusals: deque[RegistryError] = deque()
        self._renew()

    def _renew(self) -> None:
        self._state = State()
        self._api = Api(self._state, self._rules, About("tidelog-testing", __version__))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> Self:
        """Start; returns when it can be called."""
        if self._server is not None:
            raise RuntimeError("the schema registry runs already")
        self._server = _Server(self, self._port)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), name="schema-registry", daemon=True).start()
        return self

    def stop(self) -> None:
        """Close all connections. Registered schemas stay for the next ``start``."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.end_connections()

    @property
    def url(self) -> str:
        """The value for a client's ``url``."""
        if self._server is None:
            raise RuntimeError("the schema registry does not run; use it in a with block or call start()")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    # -- for asserts ---------------------------------------------------------------------------------------------------------

    @property
    def subjects(self) -> list[str]:
        """The registered subjects that are not deleted."""
        with self._guard:
            return self._subjects()

    def _subjects(self) -> list[str]:
        return reading.subjects(self._state, ALL_CONTEXTS, deleted=False, deleted_only=False)

    def register(self, subject: str, schema: str | dict[str, Any], kind: str = "AVRO") -> int:
        """Register a schema, as text or as JSON's values; returns its id. ValueError with the reason when it is refused."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = compact({"schema": text, "schemaType": kind}).encode()
        try:
            answer = self.answer(Request("POST", f"/subjects/{quote(subject, safe='')}/versions", {}, body))
        except RegistryError as refused:
            raise ValueError(f"{subject}: {refused.message} (error code {refused.code})") from refused
        return int(answer["id"])

    def schema(self, subject: str, version: int | None = None) -> str:
        """The text of a version, or of the latest. ValueError when there is none."""
        with self._guard:
            try:
                return reading.version(self._state, subject, LATEST if version is None else version, deleted=False).schema.text
            except RegistryError as refused:
                raise ValueError(f"{refused.message} There are: {', '.join(self._subjects()) or 'none'}") from refused

    def reset(self) -> None:
        """Forget everything. Clients may stay connected, but they cache ids."""
        with self._guard:
            self._refusals.clear()
            self._renew()

    def refuse(self, status: int = 500, code: int = 50001, times: int = 1) -> None:
        """Let the next ``times`` requests fail with this HTTP status and error code."""
        with self._guard:
            self._refusals.extend([RegistryError(status, code, "Planned by the test.")] * times)

    def answer(self, request: Request) -> Any:
        """Answer one request, without HTTP. RegistryError."""
        with self._guard:
            return self._api.at_once(request)

    def serve(self, request: Request) -> Any:
        """Answer one request, planned refusals included."""
        with self._guard:
            if self._refusals:
                raise self._refusals.popleft()
            return self._api.at_once(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, registry: SchemaRegistry, port: int) -> None:
        self.registry = registry
        self._open: set[socket.socket] = set()
        self._open_guard = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connected, address = super().get_request()
        with self._open_guard:
            self._open.add(connected)
        return connected, address

    def shutdown_request(self, request: Any) -> None:
        with self._open_guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that disconnects in the middle is not an error of the test."""

    def end_connections(self) -> None:
        """Close connections: handlers that wait for the next request see the end of the stream."""
        with self._open_guard:
            connections = list(self._open)
        for connected in connections:
            try:
                connected.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It closed by itself.
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # Send a response as one packet, not as headers and a body that waits for their acknowledgement.
    timeout = IDLE_S
    server: _Server

    def _do(self) -> None:
        try:
            answer, status = self.server.registry.serve(self._read()), 200
        except RegistryError as refused:
            answer, status = {"error_code": refused.code, "message": refused.message}, refused.status
        except Exception as bug:  # The test's log reports the failure, not the closed connection.
            answer, status = {"error_code": 50001, "message": f"{type(bug).__name__}: {bug}"}, 500
        body = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
        self.send_response(204 if answer is None else status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _do

    def _read(self) -> Request:
        """Read the whole request. RegistryError, and the connection closes, when its body cannot be read."""
        text = self.headers.get("Content-Length", "0")
        self.close_connection = True
        if "Transfer-Encoding" in self.headers:
            raise RegistryError(411, 411, "A body is sent with its Content-Length here.")
        if not text.isascii() or not text.isdigit():
            raise bad_request(f"Content-Length is {text!r}")
        if int(text) > MAX_BODY:
            raise RegistryError(413, 413, f"The body has {text} bytes; {MAX_BODY} are allowed.")
        raw = self.rfile.read(int(text))
        # HTTP/1.1 keeps connections unless a header says otherwise.
        self.close_connection = self.headers.get("Connection", "").lower() == "close"
        parts = urlsplit(self.path)
        query: dict[str, list[str]] = {}
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            query.setdefault(name, []).append(value)
        lenient = self.headers.get("Confluent-Accept-Unknown-Properties", "").lower() == "true"
        return Request(self.command, parts.path, query, raw, lenient)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing to stderr, which belongs to the test."""
