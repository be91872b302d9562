"""Send lineage events to an OpenLineage endpoint, a file or the screen, without holding up the run.

A thread takes events from a bounded queue: an endpoint that is slow or down costs events, and one line that says so, but no
batch. Settings that the pipeline does not make come from the environment, under the names of OpenLineage's clients.
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
"""Pauses before an event is sent again; after the last one it is dropped."""
WAITING = 1000
CLOSING_S = 10.0
Event = dict[str, Any]


def settings_of(said: Lineage | None, environment: Mapping[str, str]) -> Lineage | None:
    """Where events go: the pipeline's settings, then ``OPENLINEAGE_URL`` and OpenLineage's other variables. None: nowhere."""
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
    # A key from a mounted file ends with a newline, which no header may contain.
    key, namespace = found.api_key.strip(), found.namespace or environment.get("OPENLINEAGE_NAMESPACE", "")
    return Lineage(found.url, found.file, found.console, key, namespace)


class Sender:
    """``send`` returns at once. ``say`` gets one line when events are lost, and none again until one has arrived."""

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
        """Queue an event."""
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._lost("too many events wait for it")

    def close(self, patience_s: float = CLOSING_S) -> None:
        """Wait until everything was sent, up to a limit."""
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
        """Write to the screen and the file. Empty, or the error."""
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
        """Post to the endpoint, several times if needed. Empty, or the error."""
        problem = self._post(text) if self._where.url else ""
        for pause_s in self._pauses_s:
            # At the end of a run there is no wait for an endpoint that is down.
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
        except ValueError:  # Its message would contain the header in question.
            return "the url or the api_key has characters that a request cannot have"

    def _lost(self, problem: str) -> None:
        if not self._failing:
            self._failing = True
            place = self._where.url or self._where.file
            self._say(f"lineage: events do not reach {place} ({problem}); the pipeline goes on without.")
