"""Connections from this node to others for requests of a Raft machine: one exchange at a time with each node.

A connection is kept while it works. When the machine sends again before an answer, it has given up on the previous request; the
connection is closed, because answers come in order. A failure is reported with what matters to the machine: no process listens
there (``refused``), or the other side does not support the request in that version (``unsupported``).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Protocol

from tidelog.client.connection import ClientConnection, UnsupportedByBroker
from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.async_connection import Asked, Line
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.raft.effects import Node
from tidelog.server.cluster.node_login import PLAIN_TEXT, NodeLogin, log_in, open_line
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

_TOLD = (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR)


class Answers(Protocol):
    """Receives the outcome of each request."""

    def answered(self, request_id: int, message: Any) -> None: ...

    def failed(self, request_id: int, *, refused: bool, unsupported: bool) -> None: ...


class Peers:
    def __init__(self, runtime: LoopRuntime, answers: Answers, client_id: str, login: NodeLogin = PLAIN_TEXT) -> None:
        """``login``: what the listeners ask of this node."""
        self._login = login
        self._runtime = runtime
        self._answers = answers
        self._client_id = client_id
        self._lines: dict[Node, Line] = {}
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._told: set[tuple[Node, int]] = set()
        """Errors in answers that were logged, each once."""
        self._refusing: set[Node] = set()
        """Nodes that refused this node's login; logged once, until a login succeeds."""
        self._closed = False

    def send(self, request_id: int, to: Node, request: Any) -> None:
        """Sends a request; ``answers`` gets the answer or the failure later."""
        running = self._tasks.pop(to.id, None)
        if running is not None and not running.done():
            running.cancel()
            self._drop(to)
        if not self._closed:
            self._tasks[to.id] = self._runtime.spawn(self._run(request_id, to, request), f"asking node {to.id}")

    async def _run(self, request_id: int, to: Node, request: Any) -> None:
        tell: Callable[[], None]
        bug: Exception | None = None
        try:
            line = self._lines.get(to) or await self._connect(to)
            if line.session_ends(self._runtime.loop.time()):
                await log_in(self._runtime, line, self._login, to.host, to.port)
            asked = Asked(request, False, self._runtime.loop.create_future())
            line.send(asked)
            message = await asked.answer
            self._look(to, message)

            def tell() -> None:
                self._answers.answered(request_id, message)
        except (UnsupportedByBroker, ValueError) as error:
            log.debug("node %d at %s:%d: %s", to.id, to.host, to.port, error)

            def tell() -> None:
                self._answers.failed(request_id, refused=False, unsupported=True)
        except (OSError, EOFError, ProtocolViolation, NotAuthenticated) as error:
            first_refusal = isinstance(error, NotAuthenticated) and to not in self._refusing
            if first_refusal:
                self._refusing.add(to)
            log.log(logging.ERROR if first_refusal else logging.DEBUG, "node %d at %s:%d: %s", to.id, to.host, to.port, error)
            refused = isinstance(error, ConnectionRefusedError)
            self._drop(to)

            def tell() -> None:
                self._answers.failed(request_id, refused=refused, unsupported=False)
        except Exception as error:
            bug = error  # it fails the task, which logs it, but not the exchanges after it
            self._drop(to)

            def tell() -> None:
                self._answers.failed(request_id, refused=False, unsupported=False)

        if self._tasks.get(to.id) is asyncio.current_task():
            # Before the callback, which may send the next request.
            del self._tasks[to.id]
        if not self._closed:
            tell()
        if bug is not None:
            raise bug

    def _look(self, to: Node, message: Any) -> None:
        """Logs an answer of another cluster, and a refusal: a node with the wrong disk, a wrong address or a principal without
        rights would wait for a leader without end."""
        code = getattr(message, "error_code", 0)
        if code not in _TOLD or (to, code) in self._told:
            return
        self._told.add((to, code))
        if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            log.error(
                "node %d at %s:%d refuses this node: its principal may not take part in the cluster there. Name the principal of "
                "each node in super.users, on every node; its log (kafka.authorizer.logger) says which one it saw",
                to.id,
                to.host,
                to.port,
            )
        elif code == ErrorCode.UNKNOWN_SERVER_ERROR:
            # What an authorizer without ACLs answers. They are in the metadata log, which is read when there is a leader.
            log.error(
                "node %d at %s:%d answers with UNKNOWN_SERVER_ERROR. With an authorizer, only principals in super.users may take "
                "part in a quorum that has no leader, because its ACLs are not read yet: name the principal of each node there, "
                "on every node (User:ANONYMOUS without TLS and SASL). Otherwise its log has the fault",
                to.id,
                to.host,
                to.port,
            )
        else:
            log.error(
                "node %d at %s:%d is of another cluster than this node. Compare cluster.id in the meta.properties of both nodes' "
                "log dirs: one has the wrong disk or was formatted with another id, or controller.quorum.* names a wrong address",
                to.id,
                to.host,
                to.port,
            )

    async def _connect(self, to: Node) -> Line:
        for old in [each for each in self._lines if each.id == to.id]:
            self._drop(old)
        # Looked up by the system in one of our worker threads, so that a stop can wait for it.
        found = await self._runtime.run_blocking(lambda: socket.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM))
        address = min(found, key=lambda each: each[0] != socket.AF_INET)[4]
        line = self._lines[to] = Line(ClientConnection(self._client_id), Line.close)
        await open_line(self._runtime, line, self._login, to.host, to.port, str(address[0]))
        self._refusing.discard(to)
        return line

    def _drop(self, to: Node) -> None:
        line = self._lines.pop(to, None)
        if line is not None:
            line.close(ConnectionAbortedError("this node closed the connection"))

    def close(self) -> None:
        """Closes the connections; no more answers or failures are reported."""
        self._closed = True
        for task in self._tasks.values():
            task.cancel()
        for node in list(self._lines):
            self._drop(node)
