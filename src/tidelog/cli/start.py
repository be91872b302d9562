"""``tidelog start``: runs a node until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

import click

from tidelog.cli.refusal import text_of
from tidelog.cli.settings_files import ThisMachine
from tidelog.config.describe import broker_option
from tidelog.config.properties import parse
from tidelog.config.providers import Resolved, resolve, unresolved
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.records import MetadataLogError
from tidelog.metadata.supported_features import UnsupportedFeatureLevel
from tidelog.model.errors import ConfigError, KafkaError, StorageFailure
from tidelog.server import logging_setup
from tidelog.server.node import Node, ready_line
from tidelog.server.posix import on_signal
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.server.secret_files import warn_of_readers
from tidelog.server.signals import ending_signals

if TYPE_CHECKING:
    from tidelog.cli.side_process import SideProcess
    from tidelog.server.cluster.controller_node import ControllerNode
    from tidelog.server.installation import Place

log = logging.getLogger(__name__)

NOTHING: Mapping[str, str] = {}
DEFAULT_DATA = "data"
"""The data directory of a node without settings."""
CONSOLE, REGISTRY = "127.0.0.1:8080", "127.0.0.1:8081"
"""Where ``--console`` and ``--registry`` listen when they have no value."""
AUTO, MOST_PROCESSES = 0, 256
"""(AUTO: as many processes as cores.)"""
PLACE, OTHERS = "TIDELOG_PROCESS", "processes"
"""As in ``server.installation`` and ``cli.processes.layout``, which a single node does not import."""
SWITCH_S = 0.0005
REFUSALS = (ConfigError, StorageFailure, MetadataLogError, UnsupportedFeatureLevel, KafkaError)
"""Reasons why a node cannot start; one line each, and exit code 1."""


@click.command("start", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--override", "-o", "overrides", multiple=True, metavar="KEY=VALUE", help="A setting that wins over the file.")
@click.option("--data", metavar="DIR", help=f"Where to keep the data: log.dirs. [{DEFAULT_DATA}, without a file]")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on localhost:PORT; 0 takes a free port. [9092]")
@click.option(
    "--processes",
    metavar="N|auto",
    callback=lambda _, __, text: _count(text),
    help="Run N nodes as one installation, one for each core with auto. [1]",
)
@click.option(
    "--console",
    is_flag=False,
    flag_value=CONSOLE,
    metavar="[HOST:PORT]",
    help=f"Serve the web console, too, in a process of its own; port 0 takes a free one. [{CONSOLE}]",
)
@click.option(
    "--registry",
    is_flag=False,
    flag_value=REGISTRY,
    metavar="[HOST:PORT]",
    help=f"Serve the schema registry, too, in a process of its own; port 0 takes a free one. [{REGISTRY}]",
)
def command(
    properties: str | None,
    overrides: tuple[str, ...],
    data: str | None,
    port: int | None,
    processes: int | None,
    console: str | None,
    registry: str | None,
) -> None:
    """Run a node with the settings of a server.properties; without one, a broker for one machine on localhost:9092.

    With --processes, N nodes of one cluster with the same settings, which clients reach by the same address.
    """
    beside = {name: listen for name, listen in (("registry", registry), ("console", console)) if listen is not None}
    start(properties, overrides, data, port, processes, beside)


def start(
    properties: str | None,
    overrides: tuple[str, ...],
    data: str | None,
    port: int | None,
    processes: int | None = None,
    beside: Mapping[str, str] = NOTHING,
) -> NoReturn:
    """Runs a node until a signal, and exits: with 1 when it cannot start or has failed. ``processes``: how many; AUTO for as
    many as there are cores. ``beside``: where the web console and the schema registry listen beside the node, by name."""
    began = time.perf_counter()
    place = None
    if PLACE in os.environ:
        from tidelog.server import installation  # one of several processes

        place = installation.place()
    try:
        given = _settings(properties, overrides, data, port)
        machine = ThisMachine()
        found = resolve(given, machine)
        if place is None and processes not in (None, 1):
            _execute_supervisor(properties, given, found, processes, began, beside)
        config = BrokerConfig.from_properties(found.settings, found.provided)
        config.warnings += tuple(unresolved(given))
        if beside:
            from tidelog.cli import side_process

            side_process.check(beside, config)
        if place is None:
            logging_setup.set_up(config.tidelog_log_level, config.tidelog_log_format)
        else:
            # The first process alone logs what happens in the cluster.
            others = "" if place.first else "tidelog.server.cluster.state_change_logger=warning,"
            logging_setup.set_up(others + config.tidelog_log_level, config.tidelog_log_format, node_id=place.node_id)
        if place is None and any(os.path.isdir(os.path.join(each, OTHERS)) for each in config.log_dirs or config.log_dir):
            from tidelog.cli.processes.preparing import check_alone

            check_alone(config)
        _warn_of_readers(properties, given, found, machine)
    except ConfigError as error:
        _refuse(error, place)
    sys.exit(run(config, began, place, beside))


def _count(text: str | None) -> int | None:
    """The value of ``--processes``."""
    if text == "auto":
        return AUTO
    if text is None or (text.isdecimal() and 1 <= int(text) <= MOST_PROCESSES):
        return None if text is None else int(text)
    raise click.BadParameter(f"{text!r} is neither auto nor a number from 1 to {MOST_PROCESSES}", param_hint="--processes")


def _execute_supervisor(
    properties: str | None, given: Mapping[str, str], found: Resolved, count: int, began: float, beside: Mapping[str, str]
) -> None:
    """Becomes the supervisor of several processes; returns when one is enough. ConfigError when they cannot be started."""
    from tidelog.cli.processes import machine, preparing

    config = BrokerConfig(found.settings)
    logging_setup.set_up(config.tidelog_log_level, config.tidelog_log_format)
    if count == AUTO:
        count = preparing.enough(config, machine.cores())
    elif count > machine.cores():
        log.warning(
            "--processes %d is more than the %d core(s) that can be used: no more is served with it", count, machine.cores()
        )
    if count > 1:
        if "registry" in beside:
            raise ConfigError("--registry is for one process: run tidelog registry --bootstrap-server HOST:PORT beside several.")
        in_file = {} if properties is None else parse(text_of(properties))
        flags = {name: value for name, value in given.items() if in_file.get(name) != value}
        try:
            preparing.execute(preparing.Request(properties, found, flags, count, began, beside.get("console")), config)
        except StorageFailure as error:
            _refuse(error)


def run(config: BrokerConfig, began: float, place: Place | None = None, beside: Mapping[str, str] = NOTHING) -> int:
    """Serves until a signal; returns the exit code. ``place``: of one among several processes. ``beside``: as in ``start``."""
    # Requests, and a metadata snapshot that is read, create few cycles but many objects: a cycle collection every 700 objects
    # costs a fifth of a large fetch.
    gc.set_threshold(10_000, 20, 50)
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    runtime = LoopRuntime(loop)
    try:
        return loop.run_until_complete(_serve(_made(config, runtime), runtime, began, place, beside))
    finally:
        loop.run_until_complete(runtime.close())
        loop.close()


def _made(config: BrokerConfig, runtime: LoopRuntime) -> Node | ControllerNode:
    if config.is_broker:
        return Node(config, runtime)
    # Imported on demand: a module that the broker does not use would cost a tenth of its start.
    from tidelog.server.cluster.controller_node import ControllerNode

    return ControllerNode(config, runtime)


async def _serve(
    node: Node | ControllerNode, runtime: LoopRuntime, began: float, place: Place | None, beside: Mapping[str, str]
) -> int:
    stop = asyncio.Event()
    for number in ending_signals():
        on_signal(runtime.loop, number, stop.set)
    link = None
    if place is not None and isinstance(node, Node):
        from tidelog.server.installation import SupervisorLink

        node.monitoring.join(place)
        link = SupervisorLink(place, runtime, opened=node.accept_shared, spare=node.sparing, gone=stop.set)
    try:
        if not await _started(node, stop):
            return 0
    except REFUSALS as error:
        _say(error, place)
        return 1
    for warning in node.config.warnings if place is None or place.first else ():
        logging.getLogger("tidelog").warning("%s", warning)
    # Objects that exist now stay: the collector need not scan them again.
    gc.collect()
    gc.freeze()
    # A thread that runs Python code yields to the event loop after this time, not after Python's 5 ms: each send and receive
    # releases the interpreter, and would otherwise wait that long to get it back.
    sys.setswitchinterval(SWITCH_S)
    seconds = time.perf_counter() - began
    line = ready_line(node, seconds, alone=link is None) if isinstance(node, Node) else node.ready_line(seconds)
    if link is None:
        print(line, flush=True)
    else:
        log.info("%s", line)
        link.ready()
    sides = _started_beside(node, beside) if beside and isinstance(node, Node) else []
    ends = [runtime.spawn(stop.wait(), "waiting for a signal"), runtime.spawn(node.failed.wait(), "watching the node")]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    began = time.perf_counter()
    for each in reversed(sides):
        each.end()
    await node.stop()
    for each in sides:
        each.wait()
    seconds = time.perf_counter() - began
    if node.failed.is_set():
        logging.getLogger("tidelog").error("stopped after a failure, in %.1f s", seconds)
        return 1
    logging.getLogger("tidelog").info("stopped, all flushed, in %.1f s", seconds)
    return 0


def _started_beside(node: Node, beside: Mapping[str, str]) -> list[SideProcess]:
    """Starts the console and the registry of a node that serves."""
    from tidelog.cli import side_process

    return side_process.start(beside, node.config, node.ports, lambda line: log.warning("%s", line))


async def _started(node: Node | ControllerNode, stop: asyncio.Event) -> bool:
    """Waits until the node serves; False when it was stopped before that: without a quorum a start takes long."""
    starting = asyncio.ensure_future(node.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
    if starting.cancelled():
        return False
    starting.result()
    return True


def _settings(path: str | None, overrides: tuple[str, ...], data: str | None, port: int | None) -> dict[str, str]:
    """The settings of the file, overridden by the flags."""
    settings: dict[str, str] = {}
    if path is not None:
        settings.update(parse(text_of(path)))
    if port is not None:
        settings["listeners"] = f"PLAINTEXT://localhost:{port}"
    if data is not None:
        settings.pop("log.dir", None)
        settings["log.dirs"] = data
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals:
            raise click.BadParameter(f"{override!r} is no KEY=VALUE", param_hint="--override")
        settings[name.strip()] = value.strip()
    if path is None and not settings.keys() & {"log.dirs", "log.dir"}:
        settings["log.dirs"] = DEFAULT_DATA
    return settings


def _warn_of_readers(path: str | None, given: Mapping[str, str], found: Resolved, machine: ThisMachine) -> None:
    """Logs the files with secrets that every user of the machine can read."""
    with_secrets = list(dict.fromkeys(machine.files))
    options = ((name, broker_option(name)) for name in given if name not in found.provided)
    if path is not None and any(option is not None and option.sensitive for _, option in options):
        with_secrets.append(path)
    for each in with_secrets:
        warn_of_readers(each)


def _refuse(error: Exception, place: Place | None = None) -> NoReturn:
    _say(error, place)
    sys.exit(1)


def _say(error: Exception, place: Place | None = None) -> None:
    node = "" if place is None else f"node {place.node_id}: "
    for line in str(error).splitlines():
        print(f"tidelog: {node}{line}", file=sys.stderr)
