"""Lineage events on their way: to an OpenLineage endpoint, into a file, or onto the screen, beside the run and never in its way.

A thread of its own takes events from a queue with an end: an endpoint that is slow or down costs events, and a line that says so,
but no batch. Settings that the pipeline does not make come from the environment, under the names that OpenLineage's clients know.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import Lineage
from tidelog.pipeline.urls import has_user

ENDPOINT = "api/v1/lineage"
TIMEOUT_S = 5.0
PAUSES_S = (1.0, 4.0)
"""Before an event is tried again; after that it is given up."""
WAITING = 1000
CLOSING_S = 10.0
Event = dict[str, Any]


def settings_of(said: Lineage | None, environment: Mapping[str, str]) -> Lineage | None:
    """Where events go: what the pipeline says, then ``OPENLINEAGE_URL`` and what else OpenLineage knows. None: nowhere."""
    found = said or Lineage()
    if environment.get("OPENLINEAGE_DISABLED", "").lower() == "true":
        return None
    if not (found.url or found.file or found.console):
        url = environment.get("OPENLINEAGE_URL", "")
        if not url:
            return None
        where = f"{url.rstrip('/')}/{environment.get('OPENLINEAGE_ENDPOINT', ENDPOINT).lstrip('/')}"
        found = Lineage(where, "", False, environment.get("OPENLINEAGE_API_KEY", ""), found.namespace)
    if found.url and not found.url.startswith(("http://", "https://")):
        raise ConfigError(f"lineage: url {found.url!r} must begin with http:// or https://.")
    if has_user(found.url):
        raise ConfigError("lineage: the url has a user in it, which is not sent: say the url without, and api_key.")
    # A key out of a mounted file ends with a line's end, which no header may have.
    key, namespace = found.api_key.strip(), found.namespace or environment.get("OPENLINEAGE_NAMESPACE", "")
    return Lineage(found.url, found.file, found.console, key, namespace)


class Sender:
    """``send`` returns at once; ``say`` gets a line when events are lost, once until one arrives again."""

    def __init__(self, where: Lineage, say: Callable[[str], None], pauses_s: tuple[float, ...] = PAUSES_S) -> None:
        self._where = where
        self._say = say
        self._pauses_s = pauses_s
        self._waiting: queue.Queue[Event | None] = queue.Queue(WAITING)
        self._failing = False
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._work, name="tidelog-lineage", daemon=True)
        self._thread.start()

    def send(self, event: Event) -> None:
        """Take an event over."""
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._lost("too many events wait for it")

    def close(self, patience_s: float = CLOSING_S) -> None:
        """Wait until everything was sent, for so long at most."""
        deadline = time.monotonic() + patience_s
        self._hurry.set()
        try:
            self._waiting.put(None, timeout=patience_s)
        except queue.Full:
            return
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            text = json.dumps(event)
            problem = self._kept(text) or self._posted(text)
            if problem:
                self._lost(problem)
            else:
                self._failing = False

    def _kept(self, text: str) -> str:
        """On the screen and in the file. Empty, or what went wrong."""
        try:
            if self._where.console:
                print(text, flush=True)  # noqa: T201  (that is what was asked for)
            if self._where.file:
                with Path(self._where.file).open("a", encoding="utf-8") as file:
                    file.write(text + "\n")
        except OSError as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _posted(self, text: str) -> str:
        """At the endpoint, tried several times. Empty, or what went wrong."""
        problem = self._post(text) if self._where.url else ""
        for pause_s in self._pauses_s:
            # At the end of a run nobody waits for an endpoint to come back.
            if not problem or self._hurry.wait(pause_s):
                break
            problem = self._post(text)
        return problem

    def _post(self, text: str) -> str:
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self._where.api_key}"} if self._where.api_key else {}
        request = urllib.request.Request(self._where.url, text.encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):
                return ""
        except urllib.error.HTTPError as error:
            with error:
                return f"it answered {error.code} {error.reason}"
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"
        except ValueError:  # it would tell the header that it is about
            return "the url or the api_key has characters that a request cannot have"

    def _lost(self, problem: str) -> None:
        if not self._failing:
            self._failing = True
            place = self._where.url or self._where.file
            self._say(f"lineage: events do not reach {place} ({problem}); the pipeline goes on without.")
