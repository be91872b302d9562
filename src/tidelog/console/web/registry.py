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

from tidelog.console.payloads import avro, exact_json, protobuf
from tidelog.console.payloads.framed import AVRO, JSON, PROTOBUF, Refused, Schema
from tidelog.model.errors import ConfigError

TIMEOUT_S: Final = 5.0
MAX_BYTES: Final = 4 << 20
MAX_KEPT: Final = 1000
MAX_KEPT_TEXT: Final = 16 << 20
"""Characters of all schemas that are kept, with those that they refer to."""
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
        self._coming: dict[int | str, Future[Schema]] = {}
        self._found: OrderedDict[int | str, tuple[Schema, int]] = OrderedDict()
        self._kept_text = 0
        self._refused: OrderedDict[int | str, tuple[float, str]] = OrderedDict()
        self._down: tuple[float, str] = (0.0, "")

    def find(self, schema: int | str) -> Schema:
        """By id or GUID. Refused when there is no such schema, when its kind is not decoded, or when the registry does not
        answer."""
        with self._lock:
            found = self._kept(schema)
            if found is not None:
                return found
            coming = self._coming.get(schema)
            if coming is None:
                self._check_misses()
                own = self._coming[schema] = Future[Schema]()
        if coming is not None:
            try:
                return coming.result()
            except Refused as error:
                raise Refused(str(error)) from None  # one exception object for each thread
        try:
            found = self._asked(schema)
        except BaseException as error:
            own.set_exception(error if isinstance(error, Refused) else Refused(f"it cannot be looked up: {error}"))
            raise
        else:
            own.set_result(found)
            return found
        finally:
            with self._lock:
                del self._coming[schema]

    def _kept(self, schema: int | str) -> Schema | None:
        """What is known without a request. Refused while it is not to be asked for again."""
        found = self._found.get(schema)
        if found is not None:
            self._found.move_to_end(schema)
            return found[0]
        for until, reason in (self._down, self._refused.get(schema, (0.0, ""))):
            if self._now() < until:
                raise Refused(reason)
        return None

    def _check_misses(self) -> None:
        recent = sum(until > self._now() for until, _ in self._refused.values())
        if recent + len(self._coming) >= MOST_MISSES:
            raise Refused(f"{recent} ids were looked up in vain; others are asked for within {NOT_AGAIN_S:.0f} s")

    def _asked(self, schema: int | str) -> Schema:
        """Looks it up when it is its turn. The answer is kept, without the lock while the registry takes its time."""
        with self._turns:
            with self._lock:
                self._kept(schema)  # the registry may have stopped to answer meanwhile
            try:
                found, size = self._looked_up(schema)
            except Refused as error:
                with self._lock:
                    self._refused[schema] = (self._now() + NOT_AGAIN_S, str(error))
                    _bound(self._refused)
                raise
            except Unreachable as error:
                with self._lock:
                    self._down = (self._now() + NOT_AGAIN_S, str(error))
                raise Refused(str(error)) from None
            with self._lock:
                self._keep(schema, found, size)
            return found

    def _keep(self, schema: int | str, found: Schema, size: int) -> None:
        """Keep a schema; those that were used least lately go."""
        self._found[schema] = (found, size)
        self._kept_text += size
        while len(self._found) > MAX_KEPT or (self._kept_text > MAX_KEPT_TEXT and len(self._found) > 1):
            self._kept_text -= self._found.popitem(last=False)[1][1]

    def lacks(self, schema_id: int) -> bool:
        """Whether the registry says that it has no schema with this id. Unreachable."""
        try:
            self._get(f"/schemas/ids/{schema_id}", "such schema")
        except Refused:
            return True
        return False

    def _looked_up(self, schema: int | str) -> tuple[Schema, int]:
        """A schema, and the characters of it with those that it refers to."""
        by_guid = isinstance(schema, str)
        answer = self._get(f"/schemas/{'guids' if by_guid else 'ids'}/{schema}", f"schema {schema}")
        kind, text = str(answer.get("schemaType") or AVRO), str(answer["schema"])
        references: list[tuple[str, str]] = []
        text_of: Callable[[bytes], str]
        if kind == JSON:
            text_of = _json_text
        elif kind == AVRO:
            self._collect(answer, references, set())
            text_of = avro.reader(text, [each for _, each in references])
        elif kind == PROTOBUF:
            self._collect(answer, references, set())
            text_of = protobuf.reader(text, dict(references))
        else:
            raise Refused(f"schema {schema} is of the kind {kind}, which is not decoded")
        found = Schema(None if by_guid else int(schema), kind, text_of, str(schema) if by_guid else None)
        return found, len(text) + sum(len(each) for _, each in references)

    def _collect(self, answer: Any, found: list[tuple[str, str]], seen: set[tuple[str, int]]) -> None:
        """The schemas that this one uses, by the names under which it does, each after its own."""
        for each in answer.get("references") or ():
            try:
                name, at = str(each["name"]), (str(each["subject"]), int(each["version"]))
            except (KeyError, TypeError, ValueError):
                raise Refused("a reference of its schema has no name, subject or version") from None
            if at in seen:
                continue
            seen.add(at)
            if len(seen) > MAX_REFERENCES:
                raise Refused(f"the schema uses more than {MAX_REFERENCES} others")
            used = self._get(f"/subjects/{quote(at[0], safe='')}/versions/{at[1]}", f"version {at[1]} of {at[0]}")
            self._collect(used, found, seen)
            found.append((name, str(used["schema"])))

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


def _bound(kept: OrderedDict[int | str, Any]) -> None:
    while len(kept) > MAX_KEPT:
        kept.popitem(last=False)


def _json_text(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
        exact_json.loads(text)
    except ValueError as error:
        raise Refused(f"behind the id of its schema is no JSON: {error}") from None
    return text
