"""One cluster: its client, its schemas, and answers that all browsers share for some seconds: many pages cost one request."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tidelog.client import AdminClient
from tidelog.client.calls import Call
from tidelog.console.asking.commands import Commands
from tidelog.console.asking.groups import Listed, listed_at
from tidelog.console.asking.overview import Overview, overview
from tidelog.console.asking.rates import History
from tidelog.console.payloads.framed import Schemas
from tidelog.console.web.answers import Answer
from tidelog.console.web.problems import error_text

T = TypeVar("T")
MAX_KEPT: Final = 512
OVERVIEW_MS: Final = 3_000
GROUPS_MS: Final = 5_000
MAX_HISTORIES: Final = 500
TIMEOUT_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer, when the cluster was asked for it, and until when it is given."""

    value: Any
    at_ms: int
    until_ms: int = 0


class Shared:
    """Answers by key. While one is being fetched, all who want it wait for that. Failures are not kept."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._coming: dict[Hashable, asyncio.Task[Kept]] = {}
        self._age = 0

    async def get(self, key: Hashable, longest_ms: int, fetch: Callable[[], Awaitable[Any]]) -> Kept:
        """The answer, at most ``longest_ms`` old. Raises what ``fetch`` raises."""
        found = self._kept.get(key)
        if found is not None and self._now_ms() - found.at_ms < longest_ms:
            self._kept.move_to_end(key)
            return found
        coming = self._coming.get(key)
        if coming is None:
            coming = self._coming[key] = asyncio.get_running_loop().create_task(self._fetched(key, longest_ms, fetch, self._age))
            coming.add_done_callback(lambda task: self._came(key, task))
        return await asyncio.shield(coming)

    def forget(self) -> None:
        """After a change: what is under way now is not kept either."""
        self._kept.clear()
        self._coming.clear()
        self._age += 1

    async def close(self) -> None:
        """Ends what is under way."""
        tasks = list(self._coming.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetched(self, key: Hashable, longest_ms: int, fetch: Callable[[], Awaitable[Any]], age: int) -> Kept:
        now_ms = self._now_ms()
        found = Kept(await fetch(), now_ms, now_ms + longest_ms)
        if age == self._age:
            self._keep(key, found)
        return found

    def _keep(self, key: Hashable, found: Kept) -> None:
        """Old answers are as large as new ones, and nothing asks for them: they go."""
        now_ms = self._now_ms()
        for old in [each for each, kept in self._kept.items() if kept.until_ms <= now_ms]:
            del self._kept[old]
        self._kept[key] = found
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def _came(self, key: Hashable, task: asyncio.Task[Kept]) -> None:
        if self._coming.get(key) is task:
            del self._coming[key]
        if not task.cancelled():
            task.exception()  # retrieved, even where every caller has left


class Cluster:
    """A Kafka cluster under the operator's name. ``config_file``: for the commands that are shown."""

    def __init__(
        self,
        cluster_id: str,
        bootstrap: str,
        settings: Mapping[str, str],
        now_ms: Callable[[], int],
        config_file: str | None = None,
        schemas: Schemas | None = None,
    ) -> None:
        """ConfigError for unusable settings, certificates or keys."""
        self.schemas = schemas
        self.id = cluster_id
        self.bootstrap = bootstrap
        self.commands = Commands(bootstrap, config_file)
        self.shared = Shared(now_ms)
        self._settings = {
            "client.id": "tidelog-console",
            "request.timeout.ms": str(TIMEOUT_MS),
            "default.api.timeout.ms": str(TIMEOUT_MS),
            **settings,
        }
        self._admin = AdminClient(bootstrap, self._settings)
        self._histories: OrderedDict[str, History] = OrderedDict()

    async def run(self, call: Call[T]) -> T:
        """Run a call on connections that pages share."""
        return await self._admin.run(call)

    def reader(self) -> AdminClient:
        """A client of its own for a stream: its long requests hold up no page. The caller closes it."""
        return AdminClient(self.bootstrap, {**self._settings, "client.id": "tidelog-console-reader"})

    async def overview(self) -> tuple[Overview, int]:
        """Brokers and topics, and when they were asked for."""
        kept = await self.shared.get("overview", OVERVIEW_MS, lambda: self.run(overview()))
        return kept.value, kept.at_ms

    async def groups(self) -> Answer:
        """All groups by id; ``partial`` names the brokers that did not answer."""
        kept = await self.shared.get("groups", GROUPS_MS, self._groups)
        found, partial = kept.value
        return Answer(found, kept.at_ms, partial)

    async def _groups(self) -> tuple[dict[str, Listed], tuple[tuple[str, str], ...]]:
        brokers = list((await self.overview())[0].brokers)
        found, partial = await self.each(brokers, lambda broker: self.run(listed_at(broker)))
        listed = sorted((each for rows in found.values() for each in rows), key=lambda each: each.group_id)
        return {each.group_id: each for each in listed}, partial

    async def each(
        self, brokers: list[int], ask: Callable[[int], Awaitable[T]]
    ) -> tuple[dict[int, T], tuple[tuple[str, str], ...]]:
        """The answers of brokers, all asked at once; and what is wrong with those that gave none."""
        answers = await asyncio.gather(*(ask(broker) for broker in brokers), return_exceptions=True)
        found: dict[int, T] = {}
        partial: list[tuple[str, str]] = []
        for broker, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, Exception):
                partial.append((f"broker {broker}", error_text(answer)))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found[broker] = answer
        return found, tuple(partial)

    def history(self, group_id: str) -> History:
        """The samples of a group; of the group that was looked at least lately they are dropped for a new one."""
        found = self._histories.get(group_id)
        if found is None:
            found = self._histories[group_id] = History()
            while len(self._histories) > MAX_HISTORIES:
                self._histories.popitem(last=False)
        self._histories.move_to_end(group_id)
        return found

    async def close(self) -> None:
        await self.shared.close()
        await self._admin.close()
