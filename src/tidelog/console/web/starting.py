"""Starts a console from its options, and refuses to start one that is half secured: the error says what to change."""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tidelog.config.listeners import address_text, parse_address
from tidelog.console.access.users import Users
from tidelog.console.web.addresses import networks
from tidelog.console.web.application import Application
from tidelog.console.web.audit import Audit, to_file
from tidelog.console.web.clusters import Cluster
from tidelog.console.web.context import Limits, State, wall_ms
from tidelog.console.web.registry import Registry
from tidelog.console.web.static_files import StaticFiles
from tidelog.console.web.table import routes
from tidelog.model.addresses import is_loopback
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.console.web.sign_in import SignIn

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
MOST_CONNECTIONS: Final = 512
BACKLOG: Final = 512
LARGEST_HEAD: Final = 65_536
KEEP_ALIVE_S: Final = 30
_CLUSTER_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_BASE: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*/")


@dataclass(frozen=True, slots=True)
class ClusterOption:
    """A cluster under the operator's name. ``config_file``: where the settings come from, for the commands that are shown."""

    cluster_id: str
    bootstrap: str
    settings: Mapping[str, str] = field(repr=False)
    config_file: str | None = None
    registry: str | None = field(default=None, repr=False)
    """The address of its schema registry."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command was given. ``users``: the text of the users' file, and its name."""

    clusters: Sequence[ClusterOption]
    listen: str = "127.0.0.1:8080"
    public_url: str | None = None
    base_path: str = "/"
    users: tuple[str, str] | None = None
    read_only: bool = False
    certificate: str | None = None
    key: str | None = None
    audit_file: str | None = None
    proxies: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


def checked(options: Options) -> tuple[str, int]:
    """The address to listen on. ConfigError for options that would leave the console open, or do not fit together."""
    host, port = parse_address("--listen", options.listen)
    if (options.certificate is None) != (options.key is None):
        raise ConfigError("--tls-certificate and --tls-key belong together: give both or none.")
    encrypted = options.certificate is not None
    if not is_loopback(host):
        where = f"--listen {options.listen} can be reached from other machines"
        if options.users is None:
            raise ConfigError(f"{where}: give --users FILE, so that people log in, or listen on 127.0.0.1.")
        if options.public_url is None:
            raise ConfigError(f"{where}: say under which name browsers reach it, --public-url https://NAME.")
        if not encrypted and urlsplit(options.public_url).scheme != "https":
            raise ConfigError(
                f"{where}, and passwords would cross the network unencrypted: give --tls-certificate and --tls-key, or put a "
                "proxy with TLS before it and name that, --public-url https://NAME."
            )
    base_of(options)
    names = [each.cluster_id for each in options.clusters]
    for name in names:
        if not _CLUSTER_ID.fullmatch(name) or names.count(name) > 1:
            raise ConfigError(f"the cluster name {name!r} must be of a-z, 0-9 and minus, and given once.")
    if not names:
        raise ConfigError("there is no cluster: give --bootstrap-server HOST:PORT.")
    return host, port


def base_of(options: Options) -> str:
    """The path that the console is served under, with a slash at both ends. ConfigError."""
    from_url = urlsplit(options.public_url).path if options.public_url else ""
    path = from_url if from_url.strip("/") else options.base_path
    base = "/" + path.strip("/") + ("/" if path.strip("/") else "")
    if not _BASE.fullmatch(base) or base.startswith("/api/"):
        raise ConfigError(f"--base-path {path} must be of letters, digits and slashes, such as /console.")
    return base


def hosts_of(options: Options, host: str) -> frozenset[str]:
    """The names that requests may be for."""
    found = set(LOOPBACK_NAMES) if is_loopback(host) else set()
    if options.public_url is not None:
        parts = urlsplit(options.public_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConfigError(f"--public-url {options.public_url} must be like https://console.example.org or .../path.")
        found.add(f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname.lower())
    return frozenset(found)


def state_of(options: Options) -> State:
    """The console's state. ConfigError for options that cannot be used; nothing is connected yet."""
    host, _ = checked(options)
    base = base_of(options)
    secure = options.certificate is not None or (options.public_url or "").startswith("https://")
    try:
        audit = Audit(wall_ms, to_file(options.audit_file)) if options.audit_file else Audit(wall_ms)
    except OSError as error:
        raise ConfigError(f"--audit-file {options.audit_file} cannot be written: {error.strerror}.") from None
    users = None if options.users is None else Users(*options.users)
    return State(
        {
            each.cluster_id: Cluster(
                each.cluster_id,
                each.bootstrap,
                each.settings,
                wall_ms,
                each.config_file,
                None if each.registry is None else Registry(each.registry),
            )
            for each in options.clusters
        },
        users,
        hosts_of(options, host),
        audit,
        secrets.token_urlsafe(32),
        StaticFiles(base=base),
        base,
        secure,
        options.read_only,
        options.limits,
        proxies=networks(options.proxies),
        sign_in=_sign_in(users, options, base),
    )


def _sign_in(users: Users | None, options: Options, base: str) -> SignIn | None:
    """ConfigError for a login by OIDC that is half configured, or whose packages are missing."""
    if users is None or users.oidc is None:
        return None
    if find_spec("joserfc") is None:
        raise ConfigError("login by OIDC needs joserfc: pip install 'tidelog[console,oidc]'")
    from tidelog.console.web.sign_in import sign_in_of

    return sign_in_of(users, options.public_url, base, wall_ms)


def server(options: Options) -> Any:
    """A uvicorn server that is not running yet. ConfigError."""
    import uvicorn

    from tidelog.console.web.serving import Server
    from tidelog.http.connections import Connection

    host, port = checked(options)
    state = state_of(options)
    return Server(
        uvicorn.Config(
            Application(state, routes()),
            host=host.strip("[]"),
            port=port,
            http=Connection,
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            ssl_certfile=options.certificate,
            ssl_keyfile=options.key,
        ),
        state.ending,
    )


def warnings(options: Options) -> list[str]:
    """What to say before the start of a console whose options are right. It asks the provider of the login for its metadata,
    once: ConfigError when logins by it cannot work."""
    found = []
    host, _ = parse_address("--listen", options.listen)
    public = urlsplit(options.public_url or "").hostname or "localhost"
    if options.users is not None and not options.proxies and is_loopback(host) and not is_loopback(public):
        found.append(
            f"browsers reach {public} through a proxy, and without --proxy ADDRESS all of them count as one: wrong passwords of "
            "one slow the log-ins of all, and the audit has the proxy's address."
        )
    settings = None if options.users is None else Users(*options.users).oidc
    if settings is not None:
        from tidelog.console.oidc.making import looked_at

        problem = looked_at(settings)
        found += [] if problem is None else [problem]
    return found


def bound(host: str, port: int) -> socket.socket:
    """A listening socket. ConfigError when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while ")[0]  # socket says the address once more
        raise ConfigError(f"--listen: {host}:{port} cannot be listened on: {why}.") from None


def url_of(options: Options, port: int) -> str:
    """Where a browser finds the console. ``port``: the one that was bound."""
    if options.public_url is not None:
        return options.public_url
    host, _ = parse_address("--listen", options.listen)
    scheme = "https" if options.certificate is not None else "http"
    return f"{scheme}://{address_text(host, port)}{base_of(options)}"
