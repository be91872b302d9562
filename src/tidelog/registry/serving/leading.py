"""This registry in the group of registries: it stays a member, and knows who leads.

Invariants: while this registry joins, it does not lead, and no write is under way; it leads only after it read everything that
was written before; it stops to lead when its last heartbeat is a session old, because another may lead from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tidelog.client.failures import NoConnection, NoRoute
from tidelog.client.net.aio import AsyncClient
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.registry import errors
from tidelog.registry.errors import RegistryError
from tidelog.registry.serving import group
from tidelog.registry.serving.election import DUPLICATE_URLS, Identity, write_identity
from tidelog.registry.serving.group import Membership

log = logging.getLogger(__name__)
SESSION_MS = 10_000
REBALANCE_MS = 30_000
HEARTBEAT_S = 2.0
PAUSE_S = 0.2
WAIT_S = 15.0
"""How long a write waits for a leader."""
_REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class Writes(Protocol):
    """The registry's own writes."""

    def paused(self) -> AbstractAsyncContextManager[object]:
        """No write is under way inside."""

    async def catch_up(self) -> None:
        """Read to the topic's end. RegistryError."""


class Leading:
    """``run`` until cancelled. ``now_s``: the loop's clock."""

    def __init__(
        self, client: AsyncClient, group_id: str, identity: Identity, writes: Writes, now_s: Callable[[], float]
    ) -> None:
        self._client, self._group, self._identity, self._writes, self._now_s = client, group_id, identity, writes, now_s
        self._member: Membership | None = None
        self._leader: Identity | None = None
        self._leased_until_s = 0.0
        self._changed = asyncio.Condition()

    async def leader(self) -> Identity | None:
        """The leader, None if it is this registry. 50004 when there is none for a while."""
        try:
            async with asyncio.timeout(WAIT_S), self._changed:
                await self._changed.wait_for(lambda: self._known() is not None)
                found = self._known()
        except TimeoutError as problem:
            raise errors.no_leader("no registry leads at present; try again") from problem
        return None if found == self._identity else found

    def leads(self) -> bool:
        """Whether this registry leads now."""
        return self._known() == self._identity

    def _known(self) -> Identity | None:
        if self._leader == self._identity and self._now_s() >= self._leased_until_s:
            return None
        return self._leader

    async def run(self) -> None:
        """Stay a member."""
        member_id = ""
        while True:
            try:
                member_id = await self._joined(member_id)
                await self._beating()
            except (NoConnection, NoRoute, RegistryError, ValueError) as problem:
                log.warning("group %s: %s", self._group, problem)
                await asyncio.sleep(PAUSE_S)
            except KafkaError as problem:
                if problem.code == ErrorCode.UNKNOWN_MEMBER_ID:
                    member_id = ""
                elif problem.code not in _REJOIN and not problem.code.retriable:
                    raise
                await asyncio.sleep(PAUSE_S)

    async def _joined(self, member_id: str) -> str:
        async with self._writes.paused():
            await self._set(None)
            asked_s = self._now_s()
            metadata = write_identity(self._identity, leads=False)
            self._member = member = await self._client.run(group.join(self._group, member_id, metadata, SESSION_MS, REBALANCE_MS))
        if member.assignment.error == DUPLICATE_URLS:
            log.error("two registries say that they are at %s: give each its own --advertise", self._identity.url)
        self._leased_until_s = max(asked_s, self._now_s()) + SESSION_MS / 1000
        if member.assignment.leader == self._identity:
            await self._writes.catch_up()
            log.info("this registry leads, at %s", self._identity.url)
        await self._set(member.assignment.leader)
        return member.member_id

    async def _set(self, leader: Identity | None) -> None:
        async with self._changed:
            self._leader = leader
            self._changed.notify_all()

    async def _beating(self) -> None:
        """Heartbeats until the group changes. KafkaError says how."""
        assert self._member is not None
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            asked_s = self._now_s()
            error = await self._client.run(group.heartbeat(self._group, self._member))
            if error != ErrorCode.NONE:
                raise KafkaError(error, f"group {self._group}: {error.text}")
            self._leased_until_s = asked_s + SESSION_MS / 1000
            async with self._changed:
                self._changed.notify_all()

    async def leave(self) -> None:
        """Leave the group, at the end of this registry."""
        if self._member is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(2):
                    await self._client.run(group.leave(self._group, self._member))
