"""``SchemaLog``: the topic on asyncio, with retries. One task reads, one at a time appends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection, NoRoute
from tidelog.client.fetching import Verdict as FetchVerdict
from tidelog.client.fetching import judge as judge_fetch
from tidelog.client.net.aio import AsyncClient
from tidelog.client.producing import Verdict, judge
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.registry import errors
from tidelog.registry.serving import topic
from tidelog.registry.serving.topic import KeyValue, Place, Producer, ReadBatch

log = logging.getLogger(__name__)
APPEND_S = 30.0
"""How long an append is tried."""
PAUSE_S = 0.1
_LOST = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH)
"""The broker does not know this producer's earlier batches any more: it begins again."""


class SchemaLog:
    """``reader`` waits for records on its own connections, so that appends of ``writer`` do not wait behind it.

    ``replicas``: see ``topic.prepare``; ``now_ms``: the wall clock, for timestamps of records.
    """

    def __init__(
        self, reader: AsyncClient, writer: AsyncClient, name: str, replicas: int | None, now_ms: Callable[[], int]
    ) -> None:
        self._reader, self._client, self._name, self._replicas, self._now_ms = reader, writer, name, replicas, now_ms
        self._place: Place | None = None
        self._producer: Producer | None = None

    @property
    def name(self) -> str:
        """The topic."""
        return self._name

    async def prepare(self) -> str:
        """Make and check the topic; returns the cluster's id. ConfigError, KafkaError, NoConnection, NotAuthenticated."""
        return await self._client.run(topic.prepare(self._name, self._replicas))

    async def _leader(self) -> Place:
        while self._place is None:
            self._place = await self._client.run(topic.locate(self._name))
            if self._place is None:
                await asyncio.sleep(PAUSE_S)
        return self._place

    async def read(self, offset: int) -> ReadBatch:
        """The records from ``offset`` on; none if there are none for a while. Retries what passes. KafkaError for the rest."""
        while True:
            try:
                place = await self._leader()
                return await self._reader.run(topic.read(self._reader.settings, place, offset))
            except (NoConnection, NoRoute) as problem:
                log.warning("%s: %s", self._name, problem)
            except KafkaError as problem:
                if judge_fetch(problem.code) not in (FetchVerdict.RETRY, FetchVerdict.REFRESH):
                    raise
            self._place = None
            await asyncio.sleep(PAUSE_S)

    async def append(self, records: Sequence[KeyValue]) -> int:
        """Append records as one batch; the offset of the first, or -1 if a retry found them there. RegistryError (42209, 50001,
        50002)."""
        sent = False
        try:
            async with asyncio.timeout(APPEND_S):
                producer = self._producer = self._producer or await self._begin()
                batch = topic.batch_of(records, producer, self._now_ms())
                while True:
                    try:
                        place = await self._leader()
                        sent = True
                        error, offset = await self._client.run(topic.append(place, batch, int(1000 * APPEND_S)))
                    except (NoConnection, NoRoute):
                        self._place = None
                        await asyncio.sleep(PAUSE_S)
                        continue
                    verdict = judge(error)
                    if verdict is Verdict.DONE:
                        self._producer = replace(producer, sequence=producer.sequence + len(records) & 0x7FFFFFFF)
                        return offset if error == ErrorCode.NONE else -1
                    if verdict not in (Verdict.RETRY, Verdict.REFRESH):
                        self._producer = None
                        raise _refused(error, self._name)
                    self._place = None
                    await asyncio.sleep(PAUSE_S)
        except TimeoutError as problem:
            self._producer = None
            if sent:
                raise errors.store_timed_out(f"no answer about {self._name} within {APPEND_S:.0f} s") from problem
            raise errors.store_failed(f"{self._name} has no leader that answers within {APPEND_S:.0f} s") from problem
        except (KafkaError, UnsupportedByBroker) as problem:
            self._producer = None
            raise errors.store_failed(str(problem)) from problem

    async def _begin(self) -> Producer:
        while True:
            try:
                return await self._client.run(topic.begin())
            except NoConnection:
                await asyncio.sleep(PAUSE_S)
            except KafkaError as problem:
                if not problem.code.retriable:
                    raise
                await asyncio.sleep(PAUSE_S)


def _refused(error: ErrorCode, name: str) -> errors.RegistryError:
    if error in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        return errors.RegistryError(422, 42209, f"The schema is larger than max.message.bytes of the topic {name} allows.")
    if error in _LOST:
        return errors.store_failed(f"the broker lost this producer's state ({error.name}); send the request again")
    return errors.store_failed(f"{name}: {error.name}: {error.text}")
