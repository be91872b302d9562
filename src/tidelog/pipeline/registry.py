"""A schema registry's REST API, as far as reading needs it: a schema by its id, the newest of a subject.

Answers about ids never change and are cached for the life of the process. A registry that is down is asked again until
``timeout_ms`` is over, then the batch fails: an outage says nothing about the records. An unknown id is an error of the record.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.model import Registry

CALL_TIMEOUT_S = 10
MAX_ANSWER = 16 << 20
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0


class UnknownSchema(Exception):
    """The registry has no schema of this id."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A registered schema. ``references`` are the texts of the schemas that it refers to, in the order in which they are
    needed."""

    schema_id: int
    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class RegistryClient:
    """Blocking, one per process and registry."""

    def __init__(
        self,
        registry: Registry,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._registry = registry
        self._now = now
        self._pause = pause
        self._by_id: dict[tuple[int, str], Schema | None] = {}

    def schema(self, schema_id: int, form: str = "") -> Schema:
        """The schema of an id; ``form`` is passed on as ``format``. UnknownSchema, or PipelineFailure when no registry
        answers."""
        key = (schema_id, form)
        if key not in self._by_id:
            answer = self._get(f"/schemas/ids/{schema_id}" + (f"?format={form}" if form else ""))
            self._by_id[key] = None if answer is None else self._read(answer, schema_id)
        found = self._by_id[key]
        if found is None:
            raise UnknownSchema(f"schema id {schema_id} is not in the registry {self._registry.url}")
        return found

    def newest(self, subject: str, form: str = "") -> Schema:
        """The newest schema of a subject. PipelineFailure when it has none."""
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest" + (f"?format={form}" if form else "")
        answer = self._get(path)
        if answer is None:
            raise PipelineFailure(
                f"The registry {self._registry.url} has no subject {subject!r}: register a schema, or correct the name."
            )
        return self._read(answer, int(answer["id"]))

    def _read(self, answer: dict[str, Any], schema_id: int) -> Schema:
        texts: dict[str, str] = {}
        self._collect(answer, texts, depth=0)
        return Schema(schema_id, str(answer.get("schemaType", "AVRO")), str(answer["schema"]), tuple(texts.items()))

    def _collect(self, answer: dict[str, Any], texts: dict[str, str], depth: int) -> None:
        if depth > 20:
            raise PipelineFailure(f"Schemas of the registry {self._registry.url} refer to each other too deeply.")
        for reference in answer.get("references") or ():
            name = str(reference["name"])
            if name not in texts:
                path = f"/subjects/{urllib.parse.quote(reference['subject'], safe='')}/versions/{reference['version']}"
                found = self._get(path)
                if found is None:
                    raise PipelineFailure(f"The registry {self._registry.url} lacks {path}, which a schema refers to as {name}.")
                self._collect(found, texts, depth + 1)
                texts[name] = str(found["schema"])

    def _get(self, path: str) -> dict[str, Any] | None:
        """The answer; None for 404."""
        request = urllib.request.Request(self._registry.url + path, headers={"Accept": "application/vnd.schemaregistry.v1+json"})
        if self._registry.username is not None:
            pair = f"{self._registry.username}:{self._registry.password or ''}".encode()
            request.add_header("Authorization", "Basic " + base64.b64encode(pair).decode())
        deadline, pause, problem = self._now() + self._registry.timeout_ms / 1000, FIRST_PAUSE_S, ""
        while True:
            try:
                with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S) as answer:
                    found: dict[str, Any] = json.loads(answer.read(MAX_ANSWER))
                    return found
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return None
                if error.code < 500 and error.code not in (408, 429):
                    raise PipelineFailure(
                        f"The registry {self._registry.url} refuses {path} with HTTP status {error.code}: check url, username "
                        "and password of `registry` in the pipeline."
                    ) from None
                problem = f"HTTP status {error.code}"
            except (OSError, ValueError, http.client.HTTPException) as error:
                problem = str(getattr(error, "reason", error)) or type(error).__name__
            left = deadline - self._now()
            if left <= 0:
                raise PipelineFailure(
                    f"The schema registry {self._registry.url} did not answer within {self._registry.timeout_ms} ms ({problem}). "
                    "No record of this batch was treated as bad: start the registry, or correct `registry` in the pipeline, and "
                    "run it again."
                )
            self._pause(min(pause, left))
            pause = min(pause * 2, LONGEST_PAUSE_S)


_CLIENTS: dict[Registry, RegistryClient] = {}


def client_of(registry: Registry) -> RegistryClient:
    """This process's client."""
    return _CLIENTS.setdefault(registry, RegistryClient(registry))
