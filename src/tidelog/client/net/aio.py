"""Calls on asyncio: one connection per address, with several requests in flight on each."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Coroutine
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from tidelog import __version__
from tidelog.client.calls import Call
from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import versions
from tidelog.client.failures import NoConnection, before_the_first_answer
from tidelog.client.net.async_connection import LARGEST_ANSWER_BYTES, Asked, Line
from tidelog.client.net.blocking import credentials_of, not_trusted
from tidelog.client.routing import Address, Exchange, Moves, Routing, Sleep, Together, VersionAt
from tidelog.client.settings import ClientSettings
from tidelog.config.listeners import address_text
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.structure import Message

T = TypeVar("T")


class AsyncClient:
    """Runs calls on a cluster, concurrently if needed. Use it on one event loop.

    ``controllers``: the bootstrap servers are controllers (KIP-919).
    """

    def __init__(self, settings: ClientSettings, *, controllers: bool = False) -> None:
        """ConfigError for unusable certificates or keys; they are read here, with blocking I/O."""
        self.settings = settings
        self._tls: ssl.SSLContext | None = None
        if settings.tls is not None:
            from tidelog.client.net.tls import tls_context

            self._tls = tls_context(settings.tls, settings.prefix)
        self._credentials = credentials_of(settings)
        self._controllers = controllers
        self._routing: Routing | None = None
        self._lines: dict[Address, asyncio.Task[Line]] = {}
        self._closed = False

    async def run(self, call: Call[T]) -> T:
        """Run ``call`` and return its result. NoConnection, NotAuthenticated, KafkaError, UnsupportedByBroker, depending on
        the call."""
        if self._routing is None:
            now = asyncio.get_running_loop().time
            self._routing = Routing(self.settings, now, random.Random(), controllers=self._controllers)
        return await self._drive(self._routing.run(call))

    async def _drive(self, moves: Moves[T]) -> T:
        try:
            move = next(moves)
            while True:
                try:
                    result = await self._do(move)
                except Exception as error:
                    move = moves.throw(error)
                else:
                    move = moves.send(result)
        except StopIteration as end:
            done: T = end.value
            return done
        finally:
            moves.close()

    async def _do(self, move: Any) -> Any:
        match move:
            case Exchange():
                return await self._exchange(move.address, move.request, move.highest)
            case VersionAt():
                return (await self._line(move.address)).machine.version_of(move.api_key)
            case Sleep():
                return await asyncio.sleep(move.seconds)
            case Together():
                results = await asyncio.gather(*(self._drive(each) for each in move.parts), return_exceptions=True)
                for each in results:
                    if isinstance(each, BaseException):
                        raise each
                return results
        raise TypeError(f"{move!r} is no move of a call")

    async def _exchange(self, address: Address, request: Message, highest: int | None) -> Any:
        line = await self._line(address)
        name = address_text(*address)
        asked = Asked(request, False, asyncio.get_running_loop().create_future(), highest)
        try:
            async with asyncio.timeout(self.settings.answer_timeout_ms / 1000):
                line.send(asked)
                return await asked.answer
        except TimeoutError as error:
            reason = f"did not answer within {self.settings.answer_timeout_ms} ms ({self.settings.prefix}request.timeout.ms)"
            line.close(ConnectionAbortedError(reason))
            raise NoConnection(f"{name} {reason}", reason=reason, reached=True, sent=True) from error
        except (OSError, ProtocolViolation) as error:
            raise NoConnection(
                f"the connection to {name} ended: {error}", reason=f"the connection ended: {error}", reached=True, sent=True
            ) from error

    async def _line(self, address: Address) -> Line:
        """The open connection to an address, logged in. Requests that arrive while it opens, or while the client logs in again,
        wait for it."""
        if self._closed:
            raise NoConnection("this client is closed")
        opening = self._lines.get(address)
        if opening is None or (opening.done() and (_failed(opening) or opening.result().lost is not None)):
            opening = self._begin(address, self._open(address))
        elif opening.done() and opening.result().session_ends(asyncio.get_running_loop().time()):
            opening = self._begin(address, self._renew(address, opening.result()))
        return await asyncio.shield(opening)

    def _begin(self, address: Address, opening: Coroutine[Any, Any, Line]) -> asyncio.Task[Line]:
        task = self._lines[address] = asyncio.get_running_loop().create_task(opening)
        task.add_done_callback(_failed)  # retrieve a failure even if its caller was cancelled
        return task

    async def _log_in(self, line: Line, address: Address) -> None:
        if self._credentials is None:
            return
        begin = partial(self._credentials.login, line.machine, address_text(*address), address[0])
        login = await asyncio.to_thread(begin) if self._credentials.blocking else begin()
        await line.log_in(login, asyncio.get_running_loop(), random.random())

    async def _renew(self, address: Address, line: Line) -> Line:
        """Log in again; answers that are still to come arrive first."""
        limit_ms = self.settings.connect_timeout_ms + self.settings.answer_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._log_in(line, address)
        except BaseException as error:
            line.close(ConnectionAbortedError("the client could not log in again"))
            if isinstance(error, (OSError, ProtocolViolation)):  # TimeoutError, too
                reason = f"the connection ended while the client logged in again: {error or 'no answer in time'}"
                raise NoConnection(f"{address_text(*address)}: {reason}", reason=reason, reached=True) from error
            raise
        return line

    async def _open(self, address: Address) -> Line:
        name, settings = address_text(*address), self.settings
        loop = asyncio.get_running_loop()
        machine = ClientConnection(settings.client_id, __version__, LARGEST_ANSWER_BYTES, settings.prefix)
        line = Line(machine, Line.close)
        connected = welcomed = False
        try:
            async with asyncio.timeout(settings.connect_timeout_ms / 1000):
                host = address[0] if self._tls is not None else None
                await loop.create_connection(lambda: line, *address, ssl=self._tls, server_hostname=host)
                connected = True
                await line.converse(versions(machine), loop)
                welcomed = True
                await self._log_in(line, address)
        except BaseException as error:
            line.close(ConnectionAbortedError("this client closed the connection"))
            if isinstance(error, ssl.SSLCertVerificationError):
                raise not_trusted(error, name, settings.prefix) from error
            if isinstance(error, ProtocolViolation):
                reason = f"does not answer as a Kafka broker does: {error}"
                raise NoConnection(f"{name} {reason}", reason=reason, reached=True) from error
            if isinstance(error, TimeoutError):
                reason = f"no connection within {settings.connect_timeout_ms} ms (socket.connection.setup.timeout.ms)"
                raise NoConnection(f"{name}: {reason}", reason=reason, reached=connected) from error
            if isinstance(error, (OSError, UnicodeError)):
                reason = str(getattr(error, "strerror", None) or error)
                if connected and not welcomed:
                    reason = (
                        f"the connection ended {before_the_first_answer(settings.prefix, tls=self._tls is not None)}: {reason}"
                    )
                raise NoConnection(f"{name} cannot be reached: {reason}", reason=reason, reached=connected) from error
            raise
        return line

    async def close(self) -> None:
        """Close all connections; requests in flight fail with NoConnection."""
        self._closed = True
        for opening in self._lines.values():
            if not opening.done():
                opening.cancel()
            elif not _failed(opening):
                opening.result().close(ConnectionAbortedError("this client is closed"))
        await asyncio.gather(*self._lines.values(), return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


def _failed(opening: asyncio.Task[Line]) -> bool:
    return opening.cancelled() or opening.exception() is not None
