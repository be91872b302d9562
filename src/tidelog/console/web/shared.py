"""Answers that all browsers share for some time: many pages cost one request, and what costs much is asked for seldom."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

MAX_KEPT: Final = 512
KEPT_TIMES: Final = 10
"""An answer that took a second is kept for so many: asking takes at most a tenth of the time."""
LONGEST_KEPT_MS: Final = 15_000
STALE_TIMES: Final = 60
"""An answer that took a second is given for so many, while the next one comes."""
LONGEST_STALE_MS: Final = 60_000

in_a_hurry: ContextVar[bool] = ContextVar("in_a_hurry", default=False)
"""Whether this request wants no answer that is only kept because it costs much: its user has asked to read again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer, when the cluster was asked for it, and ages: up to ``fresh_ms`` it is given, up to ``stale_ms`` while the next
    one is on its way."""

    value: Any
    at_ms: int
    fresh_ms: int = 0
    stale_ms: int = 0


class Shared:
    """Answers by key. While one is being fetched, all who want it wait for that. Failures are not kept."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._coming: dict[Hashable, asyncio.Task[Kept]] = {}
        self._age = 0

    async def get(self, key: Hashable, longest_ms: int, fetch: Callable[[], Awaitable[Any]]) -> Kept:
        """The answer, at most ``longest_ms`` old; older where it took long, but not for one in a hurry. Raises what ``fetch``
        raises."""
        found = self._kept.get(key)
        hurried = in_a_hurry.get()
        if found is not None:
            self._kept.move_to_end(key)
            age = self._now_ms() - found.at_ms
            if age < (longest_ms if hurried else max(longest_ms, found.fresh_ms)):
                return found
        coming = self._coming.get(key) or self._begin(key, longest_ms, fetch)
        if found is not None and not hurried and self._now_ms() - found.at_ms < found.stale_ms:
            return found
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

    def _begin(self, key: Hashable, longest_ms: int, fetch: Callable[[], Awaitable[Any]]) -> asyncio.Task[Kept]:
        coming = asyncio.get_running_loop().create_task(self._fetched(key, longest_ms, fetch, self._age))
        self._coming[key] = coming
        coming.add_done_callback(lambda task: self._came(key, task))
        return coming

    async def _fetched(self, key: Hashable, longest_ms: int, fetch: Callable[[], Awaitable[Any]], age: int) -> Kept:
        began_ms = self._now_ms()
        value = await fetch()
        took_ms = max(0, self._now_ms() - began_ms)
        fresh_ms = max(longest_ms, min(KEPT_TIMES * took_ms, LONGEST_KEPT_MS))
        found = Kept(value, began_ms, fresh_ms, max(fresh_ms, min(STALE_TIMES * took_ms, LONGEST_STALE_MS)))
        if age == self._age:
            self._keep(key, found)
        return found

    def _keep(self, key: Hashable, found: Kept) -> None:
        """Old answers are as large as new ones, and nothing asks for them: they go."""
        now_ms = self._now_ms()
        for old in [each for each, kept in self._kept.items() if kept.at_ms + kept.stale_ms <= now_ms]:
            del self._kept[old]
        self._kept[key] = found
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def _came(self, key: Hashable, task: asyncio.Task[Kept]) -> None:
        if self._coming.get(key) is not task:
            if not task.cancelled():
                task.exception()
            return
        del self._coming[key]
        # Retrieved, even where every caller has left. An answer whose successor cannot be had is given no longer.
        if not task.cancelled() and task.exception() is not None:
            self._kept.pop(key, None)
