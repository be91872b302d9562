"""Requests over a log that another task replays: order, answers after the own record, writers that meet, logs that fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.registry.caller import INT, STRING
from tidelog.records.record import Record
from tidelog.registry import errors
from tidelog.registry.errors import RegistryError
from tidelog.registry.model import Schema, Version
from tidelog.registry.records import SchemaEntry, write
from tidelog.registry.registering import Rules
from tidelog.registry.rest.api import Api
from tidelog.registry.rest.requests import Request
from tidelog.registry.rest.schemas import About
from tidelog.registry.serving.node import RegistryNode
from tidelog.registry.serving.replaying import Replaying
from tidelog.registry.serving.topic import KeyValue, ReadBatch
from tidelog.registry.state import State


class Log:
    """In memory. ``before``: appended by another registry in front of the next append. ``shown``: how far readers see."""

    def __init__(self) -> None:
        self.records: list[KeyValue] = []
        self.before: list[KeyValue] = []
        self.shown: int | None = None
        self.forgets_offset = False
        self._moved = asyncio.Event()
        self._grown = asyncio.Condition()

    async def append(self, records: Sequence[KeyValue]) -> int:
        self.records += self.before
        self.before = []
        offset = len(self.records)
        self.records += records
        self._moved.set()
        async with self._grown:
            self._grown.notify_all()
        if self.forgets_offset:
            self.forgets_offset = False
            return -1
        return offset

    async def read(self, offset: int) -> ReadBatch:
        while True:
            end = len(self.records) if self.shown is None else self.shown
            if end > offset:
                found = [Record(at, 0, *self.records[at]) for at in range(offset, end)]
                return ReadBatch(found, end)
            self._moved.clear()
            await self._moved.wait()

    async def appended(self, count: int) -> None:
        """Wait until there are so many records."""
        async with self._grown:
            await self._grown.wait_for(lambda: len(self.records) >= count)

    def show(self) -> None:
        self.shown = None
        self._moved.set()


class World:
    def __init__(self) -> None:
        self.state, self.log = State(), Log()
        self.replaying = Replaying(self.log, self.state)
        self.node = RegistryNode(self.state, self.replaying, self.log)
        self.api = Api(self.state, Rules(), About("c", "1"))
        self.following = asyncio.get_running_loop().create_task(self.replaying.run())

    async def __call__(self, method: str, path: str, body: Any = None) -> Any:
        return await self.node.serve(self.api.find(Request(method, path, body=json.dumps(body).encode())))

    async def close(self) -> None:
        self.following.cancel()
        await asyncio.gather(self.following, return_exceptions=True)


def test_writes_at_once_get_different_ids_and_survive() -> None:
    async def run() -> None:
        world = World()
        await world.node.catch_up()
        schemas = [{"schema": json.dumps({"type": "fixed", "name": "F", "size": size})} for size in range(20)]
        found = await asyncio.gather(*(world("POST", f"/subjects/s{n}/versions", each) for n, each in enumerate(schemas)))
        assert sorted(each["id"] for each in found) == list(range(1, 21))
        again = World()
        again.log.records = world.log.records
        await again.node.catch_up()
        assert [await again("GET", f"/schemas/ids/{each['id']}") for each in found] == [
            await world("GET", f"/schemas/ids/{each['id']}") for each in found
        ]
        await world.close()
        await again.close()

    asyncio.run(run())


def test_a_write_is_answered_when_its_record_came_back() -> None:
    async def run() -> None:
        world = World()
        await world.node.catch_up()
        world.log.shown = 1
        write_ = asyncio.ensure_future(world("POST", "/subjects/s/versions", INT))
        await world.log.appended(2)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not write_.done()
        assert await world("GET", "/subjects") == []
        world.log.show()
        assert (await write_)["id"] == 1
        assert await world("GET", "/subjects") == ["s"]
        await world.close()

    asyncio.run(run())


def test_an_append_that_was_there_already_is_found_by_a_marker() -> None:
    async def run() -> None:
        world = World()
        world.log.forgets_offset = True
        assert (await world("POST", "/subjects/s/versions", INT))["id"] == 1
        assert len([key for key, _ in world.log.records if b"NOOP" in key]) == 1
        await world.close()

    asyncio.run(run())


def test_of_two_registries_that_write_at_once_the_later_hears_that_it_failed() -> None:
    async def run() -> None:
        world = World()
        await world.node.catch_up()
        world.log.before = [write(SchemaEntry(Version("t", 1, 1, Schema("AVRO", '"long"'))))]
        with pytest.raises(RegistryError) as caught:
            await world("POST", "/subjects/s/versions", STRING)
        assert caught.value.code == 50001
        assert (await world("GET", "/schemas/ids/1"))["schema"] == '"long"'
        assert (await world("POST", "/subjects/s/versions", STRING))["id"] == 2
        await world.close()

    asyncio.run(run())


def test_a_log_that_fails_ends_the_following_and_the_writes() -> None:
    async def run() -> None:
        world = World()

        async def broken(offset: int) -> ReadBatch:
            raise OSError("gone")

        await world.node.catch_up()
        world.log.read = broken  # type: ignore[method-assign]
        await world("POST", "/subjects/s/versions", INT)  # the read that is under way sees it
        with pytest.raises(RegistryError) as caught:
            await world("POST", "/subjects/t/versions", STRING)
        assert caught.value.code == 50002
        with pytest.raises(OSError, match="gone"):
            await world.following

    asyncio.run(run())


def test_a_refused_append_is_the_client_s_answer_and_changes_nothing() -> None:
    async def run() -> None:
        world = World()
        await world.node.catch_up()

        async def refused(records: Sequence[KeyValue]) -> int:
            raise errors.store_failed("no")

        append, world.log.append = world.log.append, refused  # type: ignore[method-assign]
        with pytest.raises(RegistryError):
            await world("POST", "/subjects/s/versions", INT)
        world.log.append = append  # type: ignore[method-assign]
        assert await world("GET", "/subjects") == []
        assert (await world("POST", "/subjects/s/versions", INT))["id"] == 1
        await world.close()

    asyncio.run(run())
