"""Prepares an installation of several processes: checks settings, locks, formats log dirs, binds the ports of first contact; then
the supervisor takes this process's place.

What cannot work is refused here, before anything is written or started, in the sentences of a single node.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import random
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, Final, NamedTuple, NoReturn

from tidelog.cli.processes.layout import SUBFOLDER, Process, lay_out, shrunk
from tidelog.cli.processes.machine import free_memory
from tidelog.cli.processes.plan import Plan, Started
from tidelog.config.listeners import EndPoint, address_text, parse_address
from tidelog.config.providers import Resolved
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.model.ports import FileSystem
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.server import component_settings
from tidelog.server.disk import DiskFileSystem
from tidelog.server.log_loading import format_new
from tidelog.server.runtime import system_now_ms
from tidelog.server.serving.binding import bind, unavailable
from tidelog.storage.checkpoints import META_PROPERTIES, read_meta_properties

log = logging.getLogger(__name__)

PROCESS_BYTES: Final = 40 << 20
"""What a process takes before it has partitions and clients."""
WAIT_S: Final = 60.0
"""How long the processes of a former supervisor may take to stop."""
POLL_S: Final = 0.1
MOST_PATH: Final = 90
"""Bytes of the folder's path: a Unix socket's has at most 104 on macOS, 108 on Linux."""
_HTTP: Final = "tidelog.http.listener"
_SUPERVISOR, _PROCESSES = "supervisor.lock", "processes.lock"
_rng = random.SystemRandom()


class Request(NamedTuple):
    """What the command was called with."""

    properties: str | None
    found: Resolved
    """The settings of file and flags, as they would be of one process."""
    flags: Mapping[str, str]
    """Those that are not in the file."""
    processes: int
    began: float
    console: str | None = None
    """Where the web console listens; None without one."""


class Locks(NamedTuple):
    """``supervisor`` is held by the supervisor alone; ``processes`` by it and all its processes, until the last has ended."""

    supervisor: IO[str]
    processes: IO[str]


def others_with_data(log_dirs: Sequence[str]) -> set[int]:
    """The node ids of processes other than the first that have data in these log dirs."""
    found: set[int] = set()
    for path in log_dirs:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found |= {int(name) for name in os.listdir(os.path.join(path, SUBFOLDER)) if name.isdecimal()}
    return found


def enough(config: BrokerConfig, cores: int) -> int:
    """The number of processes for ``auto``: as many as cores, and never fewer than have data."""
    first = config.node_id or 0
    return max(cores, *(each - first + 1 for each in others_with_data(component_settings.log_dirs(config))), 1)


def check_alone(config: BrokerConfig) -> None:
    """ConfigError when one process would start on the first node's part of an installation of several."""
    paths = component_settings.log_dirs(config)
    if there := others_with_data(paths):
        problem = shrunk(there, config.node_id or 0, 1, paths, _bootstrap(config))
        if problem is not None:
            raise problem


def execute(request: Request, config: BrokerConfig) -> NoReturn:
    """Prepares the installation, and executes its supervisor in this process. ``config``: the settings as those of one process,
    read and not checked. ConfigError or StorageFailure when it cannot be started; then nothing is left bound or locked."""
    paths = component_settings.log_dirs(config)
    _console(request, config, {})  # refused before anything is written
    _check_size(config, paths, request.processes)
    controller_port = _free_port() if config.embedded and not config.endpoints[0].port else 0
    processes = lay_out(config, paths, request.processes, controller_port)
    fs = DiskFileSystem()
    first = checked(request.found, processes)
    locks = lock(paths[0])
    sockets = {point.listener: _listening(point, config) for point in config.broker_endpoints}
    http = _pages_socket(config)
    _format(fs, first, config.embedded, processes)
    ports = {name: each.getsockname()[1] for name, each in sockets.items()}
    addresses = [str(point) for point in config.advertised(ports, socket.gethostname())]
    plan = Plan(
        processes=tuple(Started(each.node_id, _command(request, each)) for each in processes),
        addresses=tuple(addresses),
        sockets={name: each.fileno() for name, each in sockets.items()},
        http=None if http is None else http.fileno(),
        pages=_pages_folder(paths[0]),
        lock=locks.processes.fileno(),
        own_lock=locks.supervisor.fileno(),
        folder=os.path.join(paths[0], SUBFOLDER),
        log_level=config.tidelog_log_level,
        log_format=config.tidelog_log_format,
        began=request.began,
        console=_console(request, config, ports),
    )
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        file.write(plan.to_json())
        file.flush()
        file.seek(0)
        for descriptor in (file.fileno(), plan.own_lock, *plan.inherited()):
            os.set_inheritable(descriptor, True)
        os.execv(sys.executable, [sys.executable, "-m", "tidelog.cli.processes.supervisor", str(file.fileno())])


def _console(request: Request, config: BrokerConfig, ports: Mapping[str, int]) -> tuple[str, str] | None:
    """The console of the plan. ConfigError when there can be none here."""
    if request.console is None:
        return None
    from tidelog.cli import console_process

    if not ports:
        console_process.check(request.console)
    return console_process.client_address(config, ports, request.console), request.console


def checked(found: Resolved, processes: Sequence[Process]) -> BrokerConfig:
    """The settings of the first process, once those of all may be started with. ConfigError otherwise."""
    first, *_ = [BrokerConfig.from_properties({**found.settings, **each.settings}, found.provided) for each in processes]
    return first


def lock(log_dir: str) -> Locks:
    """Locks an installation by its first log dir. Waits for the processes of a supervisor that was killed. ConfigError when a
    supervisor runs, or the wait takes too long."""
    place = os.path.join(log_dir, SUBFOLDER)
    try:
        os.makedirs(place, exist_ok=True)
        own, shared = (_opened(os.path.join(place, name)) for name in (_SUPERVISOR, _PROCESSES))
    except OSError as error:
        raise ConfigError(f"log.dirs: {place} cannot be used: {error.strerror}.") from error
    if not _locks(own):
        own.seek(0)
        raise ConfigError(f"log.dirs: {log_dir} is in use by the installation of process {own.read().strip()}. Stop that first.")
    own.truncate(0)
    own.write(f"{os.getpid()}\n")
    own.flush()
    limit, said = time.monotonic() + WAIT_S, False
    while not _locks(shared):
        if time.monotonic() > limit:
            raise ConfigError(f"log.dirs: {log_dir} is in use by processes whose supervisor has ended, and which do not stop.")
        if not said:
            said = True
            log.warning("the processes of a supervisor that has ended still stop; waiting for them")
        time.sleep(POLL_S)
    return Locks(own, shared)


def _opened(path: str) -> IO[str]:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+", encoding="utf-8")


def _locks(file: IO[str]) -> bool:
    """Unlike record locks, this one is shared with the processes that inherit the descriptor."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_size(config: BrokerConfig, paths: tuple[str, ...], count: int) -> None:
    problem = shrunk(others_with_data(paths), config.node_id or 0, count, paths, _bootstrap(config))
    if problem is not None:
        raise problem
    free, needed = free_memory(), count * PROCESS_BYTES
    if free is not None and free < needed:
        raise ConfigError(
            f"--processes {count} needs at least {needed >> 20} MiB of memory, {PROCESS_BYTES >> 20} for each process, and "
            f"{free >> 20} are free. Start fewer, or give the machine more."
        )


def _format(fs: FileSystem, first: BrokerConfig, embedded: bool, processes: Sequence[Process]) -> None:
    """Formats the log dirs of new processes for the cluster of the first one."""
    paths = processes[0].log_dirs
    fresh = embedded and not any(fs.exists(f"{path}/{META_PROPERTIES}") for path in paths)
    if fresh:
        format_new(first, fs, paths, rng=_rng, now_ms=system_now_ms())
    found = [meta for path in paths if (meta := read_meta_properties(fs, path)) is not None]
    if not found:
        raise ConfigError(f"log.dirs: none of {', '.join(paths)} is formatted: run `tidelog format` first")
    for process in processes[1:]:
        new = not any(fs.exists(f"{path}/{META_PROPERTIES}") for path in process.log_dirs)
        try:
            request = FormatRequest(process.log_dirs, process.node_id, found[0].cluster_id, ignore_formatted=True)
            format_dirs(fs, request, rng=_rng, now_ms=system_now_ms())
        except OSError as error:
            raise ConfigError(f"log.dirs: {process.log_dirs[0]} cannot be formatted: {error.strerror}.") from error
        if new and not fresh:
            log.info("node %d is new, in %s; tidelog rebalance gives it its share", process.node_id, process.log_dirs[0])


def _listening(point: EndPoint, config: BrokerConfig) -> socket.socket:
    made = bind(point.listener, point.host, point.port)
    try:
        made.listen(config.socket_listen_backlog_size)
    except OSError as error:
        raise unavailable(str(point), error) from error
    return made


def _pages_socket(config: BrokerConfig) -> socket.socket | None:
    """Where the installation serves /metrics; None when that is turned off. As a single node, it takes a free port when the
    default one is in use, and refuses to when it is one that was set."""
    if not config.tidelog_http_listener:
        return None
    host, port = parse_address(_HTTP, config.tidelog_http_listener)
    try:
        made = bind("http", host, port)
        made.listen()
    except (ConfigError, OSError) as error:
        where = address_text(host, port)
        if _HTTP in config.static:
            raise ConfigError(f"{_HTTP} is {where}, but the installation cannot listen there: {error}") from error
        made = bind("http", host, 0)
        made.listen()
        found = address_text(*made.getsockname()[:2])
        log.warning("%s is in use. Metrics are at %s instead: set %s, or another node is measured.", where, found, _HTTP)
    log.info("metrics at %s/metrics", address_text(*made.getsockname()[:2]))
    return made


def _pages_folder(log_dir: str) -> str:
    """Where the processes serve each other their pages: with their data, unless that path is too long for a Unix socket."""
    folder = os.path.abspath(os.path.join(log_dir, SUBFOLDER))
    return folder if len(folder.encode()) <= MOST_PATH else tempfile.mkdtemp(prefix="tidelog-")


def _command(request: Request, process: Process) -> tuple[str, ...]:
    """The command of one process: that of a single node, with its own settings last."""
    words = [sys.executable, "-m", "tidelog.cli.main", "start"]
    if request.properties is not None:
        words.append(request.properties)
    for name, value in {**request.flags, **process.settings}.items():
        words += ["-o", f"{name}={value}"]
    return tuple(words)


def _bootstrap(config: BrokerConfig) -> str:
    point = (config.advertised_endpoints or config.broker_endpoints)[0]
    return address_text(point.host or "localhost", point.port)


def _free_port() -> int:
    """For the controller of an installation whose ports are left to the system."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
