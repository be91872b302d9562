"""Schemas of a registry with Confluent's REST API, for decoders: looked up when a record needs one, kept as ids never change.

Its address comes from the operator. Requests block, so decoders run in threads.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from tidelog.console.payloads import avro, exact_json
from tidelog.console.payloads.framed import Refused, Schema
from tidelog.model.errors import ConfigError

TIMEOUT_S: Final = 5.0
MAX_BYTES: Final = 4 << 20
MAX_KEPT: Final = 1000
MAX_REFERENCES: Final = 100
NOT_AGAIN_S: Final = 30.0
"""How long a schema that was not there, or a registry that did not answer, is not asked for again."""
AT_ONCE: Final = 4
"""Schemas that are asked for together."""
MOST_MISSES: Final = 200
"""Ids without a schema in ``NOT_AGAIN_S``: records with random ids would cost a request each."""


class Unreachable(Exception):
    """The registry does not answer."""


class Registry:
    """Looks schemas up. May be used from several threads: each schema is asked for once, a few at a time, and what is kept is
    found while others are asked for."""

    def __init__(self, url: str, now: Callable[[], float] = time.monotonic) -> None:
        """``url``: http or https, with ``user:password@`` where it asks for them. ConfigError."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConfigError("the address of the schema registry must be like https://registry.example.org:8081.")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        self._now = now
        self._lock = threading.Lock()
        """Held for a look at the tables, never during a request."""
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._coming: dict[int, Future[Schema]] = {}
        self._found: OrderedDict[int, Schema] = OrderedDict()
        self._refused: OrderedDict[int, tuple[float, str]] = OrderedDict()
        self._down: tuple[float, str] = (0.0, "")

    def find(self, schema_id: int) -> Schema:
        """Refused when there is no such schema, when its kind is not decoded, or when the registry does not answer."""
        with self._lock:
            found = self._kept(schema_id)
            if found is not None:
                return found
            coming = self._coming.get(schema_id)
            if coming is None:
                self._check_misses()
                own = self._coming[schema_id] = Future[Schema]()
        if coming is not None:
            try:
                return coming.result()
            except Refused as error:
                raise Refused(str(error)) from None  # one exception object for each thread
        try:
            found = self._asked(schema_id)
        except BaseException as error:
            own.set_exception(error if isinstance(error, Refused) else Refused(f"it cannot be looked up: {error}"))
            raise
        else:
            own.set_result(found)
            return found
        finally:
            with self._lock:
                del self._coming[schema_id]

    def _kept(self, schema_id: int) -> Schema | None:
        """What is known without a request. Refused while it is not to be asked for again."""
        found = self._found.get(schema_id)
        if found is not None:
            self._found.move_to_end(schema_id)
            return found
        for until, reason in (self._down, self._refused.get(schema_id, (0.0, ""))):
            if self._now() < until:
                raise Refused(reason)
        return None

    def _check_misses(self) -> None:
        recent = sum(until > self._now() for until, _ in self._refused.values())
        if recent + len(self._coming) >= MOST_MISSES:
            raise Refused(f"{recent} ids were looked up in vain; others are asked for within {NOT_AGAIN_S:.0f} s")

    def _asked(self, schema_id: int) -> Schema:
        """Looks it up when it is its turn. The answer is kept, without the lock while the registry takes its time."""
        with self._turns:
            with self._lock:
                self._kept(schema_id)  # the registry may have stopped to answer meanwhile
            try:
                found = self._looked_up(schema_id)
            except Refused as error:
                with self._lock:
                    self._refused[schema_id] = (self._now() + NOT_AGAIN_S, str(error))
                    _bound(self._refused)
                raise
            except Unreachable as error:
                with self._lock:
                    self._down = (self._now() + NOT_AGAIN_S, str(error))
                raise Refused(str(error)) from None
            with self._lock:
                self._found[schema_id] = found
                _bound(self._found)
            return found

    def lacks(self, schema_id: int) -> bool:
        """Whether the registry says that it has no schema with this id. Unreachable."""
        with self._lock:
            try:
                self._get(f"/schemas/ids/{schema_id}", "such schema")
            except Refused:
                return True
            return False

    def _looked_up(self, schema_id: int) -> Schema:
        answer = self._get(f"/schemas/ids/{schema_id}", f"schema {schema_id}")
        kind = str(answer.get("schemaType") or "AVRO")
        if kind == "JSON":
            return Schema(schema_id, kind, _json_text)
        if kind != "AVRO":
            raise Refused(f"schema {schema_id} is of the kind {kind}, which is not decoded")
        references: list[str] = []
        self._collect(answer, references, set())
        return Schema(schema_id, kind, avro.reader(str(answer["schema"]), references))

    def _collect(self, answer: Any, found: list[str], seen: set[tuple[str, int]]) -> None:
        """The schemas that this one uses, each after its own."""
        for each in answer.get("references") or ():
            try:
                at = (str(each["subject"]), int(each["version"]))
            except (LookupError, TypeError, ValueError):
                raise Refused("the schema uses another one without a subject and a version") from None
            if at in seen:
                continue
            seen.add(at)
            if len(seen) > MAX_REFERENCES:
                raise Refused(f"the schema uses more than {MAX_REFERENCES} others")
            used = self._get(f"/subjects/{quote(at[0], safe='')}/versions/{at[1]}", f"version {at[1]} of {at[0]}")
            self._collect(used, found, seen)
            found.append(str(used["schema"]))

    def _get(self, path: str, what: str) -> Any:
        if self._tls is not None:
            connection: HTTPConnection = HTTPSConnection(self._host, self._port, timeout=TIMEOUT_S, context=self._tls)
        else:
            connection = HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", self._path + path, headers=self._headers)
            response = connection.getresponse()
            body = response.read(MAX_BYTES + 1)
        except (OSError, HTTPException) as error:
            raise Unreachable(f"the schema registry does not answer: {error}") from None
        finally:
            connection.close()
        if response.status == 404:
            raise Refused(f"the schema registry has no {what}")
        if response.status != 200 or len(body) > MAX_BYTES:
            raise Unreachable(f"the schema registry answers with status {response.status} and {len(body)} bytes")
        try:
            answer = json.loads(body)
            if not isinstance(answer, dict) or not isinstance(answer["schema"], str):
                raise ValueError("it has no schema")
        except (ValueError, KeyError) as error:
            raise Unreachable(f"the schema registry's answer is of no use: {error}") from None
        return answer


def _bound(kept: OrderedDict[int, Any]) -> None:
    while len(kept) > MAX_KEPT:
        kept.popitem(last=False)


def _json_text(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
        exact_json.loads(text)
    except ValueError as error:
        raise Refused(f"behind the id of its schema is no JSON: {error}") from None
    return text
