"""HBase's REST server, as far as a sink needs it: look at tables and create them, write rows, read a cell.

Every request may be repeated, so failures of the network and restarts of the server are retried for ``patience_s``.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

from tidelog.model.errors import ConfigError
from tidelog.pipeline.sinks.base import SinkError
from tidelog.pipeline.urls import has_user

ANSWER_S = 60.0
"""Timeout of one answer. The HBase client inside the REST server retries for a while itself."""
_PAUSE_S = 1.0
_BUSY = (502, 503, 504)
_MAX_ANSWER = 16 << 20


@dataclass(frozen=True, slots=True)
class Address:
    """Where REST servers are, and the credentials. Sent to executors. ``urls``: tried in their order, repeatedly."""

    urls: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def read(cls, text: str, user: str, password: str) -> Address:
        """``http://one:8080,http://two:8080``. ConfigError when it is something else."""
        urls = tuple(url.strip().rstrip("/") for url in text.split(",") if url.strip())
        for url in urls or ("",):
            if has_user(url):
                raise ConfigError("url has a user in it, which is not sent: say user and password beside it.")
            if not _is_url(url):
                raise ConfigError(f"url: {url!r} must be where HBase's REST server is, like http://gateway:8080.")
        return cls(urls, user, password)


class Gateway:
    """A connection to one of the REST servers; for one thread. A context manager."""

    def __init__(self, address: Address, *, patience_s: float) -> None:
        self._address = address
        self._patience_s = patience_s
        self._connection: http.client.HTTPConnection | None = None
        self._turn = 0

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def version(self) -> str:
        """HBase's version; an answer shows that the server reaches its cluster."""
        _, body = self._ask("GET", "/version/cluster")
        return str(json.loads(body).get("Version", "")) if body[:1] == b"{" else body.decode(errors="replace").strip()

    def families(self, table: str) -> tuple[str, ...] | None:
        """A table's column families; None when there is no such table."""
        status, body = self._ask("GET", f"/{quote(table, safe=':')}/schema", missing=True)
        return None if status == 404 else tuple(str(each["name"]) for each in json.loads(body)["ColumnSchema"])

    def create(self, table: str, families: Iterable[str]) -> None:
        """A table with these families, one version of a cell kept in each."""
        schema = {"name": table, "ColumnSchema": [{"name": name, "VERSIONS": "1"} for name in families]}
        self._ask("PUT", f"/{quote(table, safe=':')}/schema", json.dumps(schema).encode())

    def put(self, table: str, body: bytes) -> None:
        """Write the rows of one request, see ``hbase_cells``. Each row is written whole or not; SinkError when one may be
        missing."""
        self._ask("PUT", f"/{quote(table, safe=':')}/rows", body)

    def cell(self, table: str, row: str, column: str) -> bytes | None:
        """The newest cell; None if there is none."""
        where = f"/{quote(table, safe=':')}/{quote(row, safe='')}/{quote(column, safe=':')}"
        status, body = self._ask("GET", where, missing=True)
        return None if status == 404 else base64.b64decode(json.loads(body)["Row"][0]["Cell"][0]["$"])

    def _ask(self, method: str, path: str, body: bytes | None = None, *, missing: bool = False) -> tuple[int, bytes]:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                status, answer = self._once(method, path, body)
                if status not in _BUSY:
                    break
                problem = f"it answered {status}: {_first(answer)}"
            except (OSError, http.client.HTTPException) as error:
                problem = f"{type(error).__name__}: {error}"
            self._close()
            self._turn += 1
            if time.monotonic() + _PAUSE_S > deadline:
                raise SinkError(
                    f"HBase's REST server at {', '.join(self._address.urls)} does not answer as it should ({problem}). See that "
                    "HBase is up, start the server where HBase is installed (`hbase rest start -p 8080`), or correct url. The "
                    "batch is written again at the next run; rows of it that are there already stay as they are."
                )
            time.sleep(_PAUSE_S)
        if status // 100 == 2 or (status == 404 and missing):
            return status, answer
        raise SinkError(f"HBase's REST server at {self._url()} answered {status} to {method} {path}: {_said(status, answer)}")

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        parts = urlsplit(self._url())
        if self._connection is None:
            made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            self._connection = made(str(parts.hostname), parts.port, timeout=ANSWER_S)
        headers = {"Accept": "application/json"} | ({"Content-Type": "application/json"} if body is not None else {})
        if self._address.user:
            token = base64.b64encode(f"{self._address.user}:{self._address.password}".encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        self._connection.request(method, parts.path + path, body, headers)
        response = self._connection.getresponse()
        answer = response.read(_MAX_ANSWER + 1)
        if len(answer) > _MAX_ANSWER:
            raise SinkError(f"{self._url()} answered with more than {_MAX_ANSWER} bytes: it is not HBase's REST server.")
        return response.status, answer

    def _url(self) -> str:
        return self._address.urls[self._turn % len(self._address.urls)]

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # A port that is not a number, or an unclosed bracket.
        return False


def _said(status: int, answer: bytes) -> str:
    """HBase's message, and what to do about it."""
    text = _first(answer)
    whole: Any = answer[:2000]
    if b"NoSuchColumnFamily" in whole:
        return f"{text}. Add the family in HBase's shell (alter 'TABLE', 'FAMILY'), or say another one."
    if b"TableNotFound" in whole:
        return f"{text}. The table was deleted while it was written to."
    if status in (401, 403):
        return f"{text}. Give the user and password of an account that may do that, or let HBase's administrator grant it."
    return text


def _first(answer: bytes) -> str:
    """The line that matters: HBase's comes second, after the status in words."""
    lines = [line.strip() for line in answer[:2000].decode(errors="replace").splitlines() if line.strip()]
    return (lines[1] if len(lines) > 1 else "".join(lines))[:300] or "no further message"
