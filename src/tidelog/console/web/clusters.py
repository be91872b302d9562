"""One cluster: its client, its schemas, and answers that all browsers share for some seconds: many pages cost one request."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from tidelog.client import AdminClient
from tidelog.client.admin.topics import brokers
from tidelog.client.calls import Call
from tidelog.console.asking.commands import Commands
from tidelog.console.asking.groups import Listed, listed_at
from tidelog.console.asking.overview import Overview, TopicState, overview
from tidelog.console.asking.rates import History
from tidelog.console.payloads.framed import Schemas
from tidelog.console.web.answers import Answer
from tidelog.console.web.aside import Aside
from tidelog.console.web.mover import Mover
from tidelog.console.web.problems import error_text
from tidelog.console.web.shared import Shared

T = TypeVar("T")
OVERVIEW_MS: Final = 3_000
GROUPS_MS: Final = 5_000
MAX_HISTORIES: Final = 500
TIMEOUT_MS: Final = 10_000


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
        self.mover = Mover(self.run, now_ms, ended=self.shared.forget)
        self._aside = Aside(bootstrap, self._settings)
        self._histories: OrderedDict[str, History] = OrderedDict()

    async def run(self, call: Call[T]) -> T:
        """Run a call on connections that pages share."""
        return await self._admin.run(call)

    async def run_aside(self, call: Call[T]) -> T:
        """Run a call whose answer is large, away from the loop that serves pages."""
        return await self._aside.run(call)

    def reader(self) -> AdminClient:
        """A client of its own for a stream: its long requests hold up no page. The caller closes it."""
        return AdminClient(self.bootstrap, {**self._settings, "client.id": "tidelog-console-reader"})

    async def overview(self) -> tuple[Overview, int]:
        """Brokers and topics, and when they were asked for."""
        kept = await self.shared.get("overview", OVERVIEW_MS, lambda: self.run_aside(overview()))
        return kept.value, kept.at_ms

    async def topic(self, name: str) -> tuple[TopicState, int]:
        """One topic, and when it was asked for: in a large cluster that is younger than the overview. KafkaError
        (UNKNOWN_TOPIC_OR_PARTITION)."""
        kept = await self.shared.get(("topic", name), OVERVIEW_MS, lambda: self.run(overview([name])))
        there: Overview = kept.value
        return there.topic(name), kept.at_ms

    async def broker_ids(self) -> list[int]:
        """The live brokers."""
        return list((await self.shared.get("brokers", OVERVIEW_MS, lambda: self.run(brokers()))).value)

    async def groups(self) -> Answer:
        """All groups by id; ``partial`` names the brokers that did not answer."""
        kept = await self.shared.get("groups", GROUPS_MS, self._groups)
        found, partial = kept.value
        return Answer(found, kept.at_ms, partial)

    async def _groups(self) -> tuple[dict[str, Listed], tuple[tuple[str, str], ...]]:
        found, partial = await self.each(await self.broker_ids(), lambda broker: self.run(listed_at(broker)))
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
        await self.mover.close()
        await self.shared.close()
        await self._aside.close()
        await self._admin.close()
