"""The pages of an installation of several processes: whichever process is asked collects what the others have.

Each process serves its own pages on a Unix socket, for the installation's user. The address of ``tidelog.http.listener`` is
shared, as those of clients are, so one of the processes answers as long as one is there.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from tidelog.metrics.exposition import CONTENT_TYPE
from tidelog.metrics.facts import SCHEMA
from tidelog.metrics.merging import merge
from tidelog.security.principal import ANONYMOUS
from tidelog.server.installation import Place
from tidelog.server.upkeep.http import Answer, Page, Reader

ANSWER_S: Final = 5.0
"""How long another process may take."""
PROBE_S: Final = 0.3
"""How long a probe waits for the others when one process is ready: less than the second that Kubernetes waits by default."""
MOST_BYTES: Final = 256 << 20
FACTS_WITH_NAMES: Final = "/facts/names"
FACTS_WITHOUT_NAMES: Final = "/facts/numbers"
"""Pages for the other processes only: the one that is asked decides whether its reader sees names."""
SHARE_RECORD: Final = "/facts/share-record"
TRUSTED_SHARE_RECORD: Final = "/facts/share-record/trusted"
"""Likewise: the one that is asked has checked the rights of its reader."""
_SEVERITY: Final = ("ok", "degraded", "starting", "failed", "down")

Run = Callable[[Callable[[], bytes]], Awaitable[bytes]]
"""Runs a job in a thread."""


def own_socket(place: Place, node_id: int) -> str:
    """Where a process of the installation serves its own pages."""
    return os.path.join(place.folder, f"{node_id}.sock")


class InstallationPages:
    """The pages at the shared address. ``own``: those of this process, by path."""

    def __init__(self, place: Place, own: Mapping[str, Page], run: Run, sees_names: Callable[[Reader], bool]) -> None:
        """``sees_names``: whether a reader may see the names in facts."""
        self._sees_names = sees_names
        self._place = place
        self._own = own
        self._run = run

    def pages(self) -> dict[str, Page]:
        """By path, under the paths of a single node."""
        return {
            "/metrics": self._metrics,
            "/facts": self._facts,
            SHARE_RECORD: self._share_record,
            "/healthz": self._health,
            "/livez": self._own["/livez"],
            "/readyz": self._ready,
        }

    async def _facts(self, reader: Reader) -> Answer:
        """The pages of all processes in a list, and the numbers of those that gave none."""
        answers = await self._all(FACTS_WITH_NAMES if self._sees_names(reader) else FACTS_WITHOUT_NAMES)
        given = {node_id: each.body for node_id, each in answers.items() if each is not None and each.status == 200}
        missing = json.dumps([node_id for node_id in answers if node_id not in given]).encode()
        nodes = b",".join(body.strip() for body in given.values())
        return Answer(200, b'{"schema":%d,"missing":%b,"nodes":[%b]}\n' % (SCHEMA, missing, nodes), "application/json")

    async def _share_record(self, reader: Reader) -> Answer:
        """What each process knows of the record, in a list; the error of this process, if it refuses the reader or the query."""
        own = await self._own[SHARE_RECORD](reader)
        if own.status not in {200, 404, 503}:
            return own
        answers = await self._all(TRUSTED_SHARE_RECORD, reader.query)
        nodes = b",".join(each.body.strip() for each in answers.values() if each is not None and each.status == 200)
        return Answer(200, b'{"schema":%d,"nodes":[%b]}\n' % (SCHEMA, nodes), "application/json")

    async def _metrics(self, reader: Reader) -> Answer:
        answers = await self._all("/metrics")
        pages = {node_id: None if each is None or each.status != 200 else each.body for node_id, each in answers.items()}
        return Answer(200, await self._run(partial(merge, pages)), CONTENT_TYPE)

    async def _health(self, reader: Reader) -> Answer:
        """503 when no process can serve; the bodies of all are listed."""
        found: list[dict[str, Any]] = []
        for node_id, answer in (await self._all("/healthz")).items():
            found.append({"status": "down", "node_id": node_id} if answer is None else json.loads(answer.body))
        worst = max((each["status"] for each in found), key=_SEVERITY.index)
        best = min((each["status"] for each in found), key=_SEVERITY.index)
        status = best if best == worst or best in ("starting", "failed", "down") else "degraded"
        body = json.dumps({"status": "failed" if status == "down" else status, "nodes": found})
        return Answer(503 if status in ("failed", "down") else 200, body.encode() + b"\n", "application/json")

    async def _ready(self, reader: Reader) -> Answer:
        """200 while one process serves clients: they are led to it. The body names those that do not."""
        asked = {node_id: asyncio.ensure_future(self._of(node_id, "/readyz")) for node_id in self._place.node_ids}
        await asyncio.wait(asked.values(), timeout=PROBE_S)
        if not any(_serves(each) for each in asked.values()):
            await asyncio.wait(asked.values())
        late = [each for each in asked.values() if each.cancel()]
        await asyncio.gather(*late, return_exceptions=True)
        answers = {node_id: None if each in late else each.result() for node_id, each in asked.items()}
        ready = any(_serves(each) for each in asked.values())
        lines = [b"ready\n" if ready else b"no process serves\n"]
        for node_id, each in answers.items():
            if each is None or each.status != 200:
                lines.append(b"node %d: %b" % (node_id, b"down\n" if each is None else each.body))
        return Answer(200 if ready else 503, b"".join(lines))

    async def _all(self, path: str, query: str = "") -> dict[int, Answer | None]:
        """The answers of all processes, by node id; None where there is none."""
        nodes = self._place.node_ids
        return dict(zip(nodes, await asyncio.gather(*(self._of(node_id, path, query) for node_id in nodes)), strict=True))

    async def _of(self, node_id: int, path: str, query: str = "") -> Answer | None:
        if node_id == self._place.node_id:
            return await self._own[path](Reader(ANONYMOUS, "", query))
        try:
            async with asyncio.timeout(ANSWER_S):
                return await _get(own_socket(self._place, node_id), f"{path}?{query}" if query else path)
        except (OSError, ValueError, TimeoutError):
            return None


def _serves(asked: asyncio.Future[Answer | None]) -> bool:
    """Whether the process has answered that clients are served."""
    return asked.done() and not asked.cancelled() and (answer := asked.result()) is not None and answer.status == 200


async def _get(socket_path: str, path: str) -> Answer:
    """Asks another process. ValueError for an answer that is none, or too long."""
    reader, writer = await asyncio.open_unix_connection(socket_path)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: installation\r\nConnection: close\r\n\r\n".encode())
        parts: list[bytes] = []
        size = 0
        while part := await reader.read(1 << 16):
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise ValueError("the answer is too long")
    finally:
        writer.close()
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    announced = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    if len(words) < 2 or len(announced) != 1 or int(announced[0].partition(b":")[2]) != len(body):
        raise ValueError("the answer is not whole")
    return Answer(int(words[1]), body)
