"""A whole registry: the topic prepared and replayed, then HTTP on a socket, until it is stopped or its topic fails."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import uvicorn

from tidelog import __version__
from tidelog.client.net.aio import AsyncClient
from tidelog.client.settings import ClientSettings
from tidelog.config.listeners import address_text
from tidelog.http.connections import Connection
from tidelog.model.addresses import is_loopback
from tidelog.model.errors import ConfigError
from tidelog.registry.registering import Rules
from tidelog.registry.rest.api import Api
from tidelog.registry.rest.schemas import About
from tidelog.registry.serving.election import Identity
from tidelog.registry.serving.forwarding import Forwarding
from tidelog.registry.serving.http import Application
from tidelog.registry.serving.leading import Leading
from tidelog.registry.serving.local import Local
from tidelog.registry.serving.log import SchemaLog
from tidelog.registry.serving.logins import Logins
from tidelog.registry.serving.node import RegistryNode
from tidelog.registry.serving.replaying import Replaying
from tidelog.registry.serving.users import Users
from tidelog.registry.state import State

TOPIC = "_schemas"
MAX_CONNECTIONS = 1000
IDLE_S = 60
STOP_S = 5


@dataclass(frozen=True, slots=True)
class Options:
    """``replicas``: of a new topic. ``insecure``: other machines may be served without login or without TLS.

    ``group``: in which registries of one topic elect their leader; ``advertised``: where the others reach this one;
    ``authority``: of the others' certificates.
    """

    client: ClientSettings
    host: str = "127.0.0.1"
    port: int = 8081
    topic: str = TOPIC
    replicas: int | None = None
    users: Users | None = field(default=None, repr=False)
    certificate: str | None = None
    key: str | None = None
    insecure: bool = False
    group: str = "schema-registry"
    advertised: tuple[str, int] | None = None
    authority: str | None = None
    rules: Rules = field(default_factory=Rules)


def check(options: Options) -> None:
    """ConfigError for a listener that others can reach and that is not secured, unless it is meant so."""
    if (options.certificate is None) != (options.key is None):
        raise ConfigError("A certificate and its key belong together: give --tls-certificate and --tls-key.")
    if options.insecure or is_loopback(options.host):
        return
    missing = [] if options.users else ["a login (--users FILE)"]
    missing += [] if options.certificate else ["TLS (--tls-certificate, --tls-key)"]
    if missing:
        raise ConfigError(
            f"{options.host} can be reached from other machines, and there is no {' and no '.join(missing)}. "
            "Listen on 127.0.0.1, or add that, or accept it with --insecure."
        )


def listen(options: Options) -> socket.socket:
    """The socket. ConfigError when it cannot be had."""
    check(options)
    if options.certificate is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.certificate, options.key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{options.certificate} and {options.key} are no certificate with its key: {error}.") from error
    try:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        return socket.create_server((options.host, options.port), family=family, backlog=256)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while ")[0]  # socket says the address once more
        raise ConfigError(f"{address_text(options.host, options.port)} cannot be listened on: {why}.") from error


class Registry:
    """``run`` serves until ``stop``."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._server: uvicorn.Server | None = None

    async def run(self, listener: socket.socket, on_ready: Callable[[str], None]) -> None:
        """Serve on a listening socket. ``on_ready`` gets the cluster's id when it does.

        ConfigError, KafkaError, NoConnection, NotAuthenticated, CorruptBatch; RegistryError if the topic cannot be written.
        """
        options, loop = self._options, asyncio.get_running_loop()
        settings = options.client
        async with AsyncClient(settings) as reader, AsyncClient(settings) as writer, AsyncClient(settings) as member:
            log = SchemaLog(reader, writer, options.topic, options.replicas, _now_ms)
            cluster_id = await log.prepare()
            state = State()
            replaying = Replaying(log, state)
            node = RegistryNode(state, replaying, log)
            leading = Leading(member, options.group, _identity(options, listener), node, loop.time)
            node.write_only_while(leading.leads)
            tasks = [loop.create_task(replaying.run())]
            logins = None if options.users is None else Logins(options.users, _now_ms)
            try:
                await node.catch_up()  # before it joins the group, which may take a while: what is there can be read at once
                tasks.append(loop.create_task(leading.run()))
                api = Api(state, options.rules, About(cluster_id, __version__, options.group))
                application = Application(
                    api, node, logins, _max_body(options.rules), leading, Forwarding(options.authority), _local(options)
                )
                on_ready(cluster_id)
                await self._serve(application, listener, tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                await leading.leave()
                if logins is not None:
                    logins.close()
                for task in tasks:
                    if not task.cancelled():
                        task.result()  # why it stopped, if it was not told to

    async def _serve(self, application: Application, listener: socket.socket, tasks: list[asyncio.Task[None]]) -> None:
        config = uvicorn.Config(
            application,
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=STOP_S,
            ssl_certfile=self._options.certificate,
            ssl_keyfile=self._options.key,
        )
        self._server = uvicorn.Server(config)
        for task in tasks:
            task.add_done_callback(lambda _: self.stop())
        await self._server.serve(sockets=[listener])

    def stop(self) -> None:
        """Let ``run`` return. On the loop's thread."""
        if self._server is not None:
            self._server.should_exit = True


def _identity(options: Options, listener: socket.socket) -> Identity:
    """Where the others reach this registry."""
    scheme = "http" if options.certificate is None else "https"
    if options.advertised is not None:
        return Identity(*options.advertised, scheme)
    host, port = listener.getsockname()[:2]
    anywhere = host in ("0.0.0.0", "::")
    return Identity(socket.gethostname() if anywhere else options.host, port, scheme)


def _local(options: Options) -> Local | None:
    """The guard of a registry that only this machine reaches, and that has no login."""
    if options.users is not None or options.insecure or not is_loopback(options.host):
        return None
    return Local([] if options.advertised is None else [options.advertised[0]])


def _max_body(rules: Rules) -> int:
    """A schema in JSON takes at most six bytes for one."""
    return 6 * rules.max_schema_bytes + (64 << 10)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
