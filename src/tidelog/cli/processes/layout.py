"""Which settings each process of ``tidelog start --processes N`` has: those of the one configuration, but for ids, ports and
directories. Pure: nothing is bound, read or written.

Process k, counted from 0, is node ``node.id`` + k. Clients find the installation at the ports of ``listeners``, those of first
contact, where every process accepts; answers to Metadata lead them to the node's own port, ``tidelog.processes.port.step``
times k + 1 above. Process 0 has the log dirs of the configuration, so that a node can become an installation as it is; the
others have ``processes/<node id>`` in each of them. Only process 0 may be a controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.listeners import EndPoint, address_text
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

SUBFOLDER: Final = "processes"
"""In each log dir: the folder with those of the other processes. It is no partition's name."""
LAST_PORT: Final = 65535
_LOCAL: Final = "localhost"
_MAP: Final = "listener.security.protocol.map"
_CONTROLLER: Final = "CONTROLLER"
_INTERNAL: Final = {
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.replication.factor": 2,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 2,
    "share.coordinator.state.topic.min.isr": 1,
}
"""Where roles are left to tidelog: so coordinators go on while one process is started again, and start with two processes."""


class Process(NamedTuple):
    """One process: its node id, its log dirs, and its settings that differ from the configuration's."""

    node_id: int
    log_dirs: tuple[str, ...]
    settings: Mapping[str, str]


def lay_out(config: BrokerConfig, log_dirs: tuple[str, ...], count: int, controller_port: int = 0) -> tuple[Process, ...]:
    """The processes of an installation. ``controller_port``: for a controller that the configuration leaves to tidelog (no
    ``process.roles``); 0 takes the first free number above that of the first listener.

    ConfigError when the configuration cannot be that of several processes.
    """
    _check(config)
    controllers = _controllers(config, controller_port)
    processes = [_process(config, log_dirs, count, index, controllers) for index in range(count)]
    _check_ports(config, count, controllers)
    return tuple(processes)


def folder(log_dir: str, node_id: int) -> str:
    """The log dir of another process than the first."""
    return f"{log_dir.rstrip('/')}/{SUBFOLDER}/{node_id}"


def shrunk(there: Iterable[int], first: int, count: int, log_dirs: tuple[str, ...], bootstrap: str) -> ConfigError | None:
    """Why an installation may not be started with fewer processes than have data. ``there``: the node ids of those that have."""
    left = sorted(each for each in there if not first < each < first + count)
    if not left:
        return None
    whole = max(*left, first) - first + 1
    names = f"node {left[0]}" if len(left) == 1 else f"nodes {', '.join(map(str, left))}"
    last = left[-1]
    return ConfigError(
        f"log.dirs: {log_dirs[0]} also has the data of {names}, and --processes is {count}. To have fewer, start with "
        f"--processes {whole}, move what the last one holds away (tidelog drain {last} --bootstrap-server {bootstrap}), stop, "
        f"remove {folder(log_dirs[0], last)}, start with --processes {whole - 1}, and forget it: "
        f"kafka-cluster unregister --id {last}."
    )


def _check(config: BrokerConfig) -> None:
    if config.node_id is None:
        raise ConfigError("node.id is not set. The processes are numbered from it on: give each installation numbers of its own.")
    if not config.is_broker:
        raise ConfigError(
            "process.roles is controller, and --processes is for brokers: one controller serves all of them, and has no use for "
            "more than one core. Start it without --processes."
        )
    if config.embedded and config.static.get("authorizer.class.name"):
        raise ConfigError(
            "authorizer.class.name is set, and process.roles is not: between several processes the controller needs a listener "
            "whose clients log in. Set process.roles=broker,controller, and for controller.listener.names one with SASL or TLS."
        )


def _controllers(config: BrokerConfig, port: int) -> tuple[EndPoint, ...]:
    """Where the controller in process 0 listens; empty when it is elsewhere."""
    if not config.is_controller:
        return ()
    if not config.embedded:
        if any(not point.port for point in config.controller_endpoints):
            raise ConfigError("listeners gives the controller port 0, but the other processes have to find it. Give it a port.")
        return config.controller_endpoints
    taken = {point.port for point in config.endpoints}
    above = config.endpoints[0].port + 1
    while above in taken:
        above += 1
    return (EndPoint(_CONTROLLER, "PLAINTEXT", _LOCAL, port or above),)


def _process(
    config: BrokerConfig, log_dirs: tuple[str, ...], count: int, index: int, controllers: tuple[EndPoint, ...]
) -> Process:
    node_id = (config.node_id or 0) + index
    settings: dict[str, str] = {"node.id": str(node_id)}
    if "broker.id" in config.static:
        settings["broker.id"] = str(node_id)
    shift = config.tidelog_processes_port_step * (index + 1)
    own = [_shifted(point, shift) for point in config.broker_endpoints]
    settings["listeners"] = ",".join(map(str, (*own, *(controllers if index == 0 else ()))))
    if config.advertised_endpoints:
        names = {point.listener for point in config.broker_endpoints}
        told = [_shifted(point, shift) for point in config.advertised_endpoints if point.listener in names]
        rest = [point for point in config.advertised_endpoints if point.listener not in names and index == 0]
        settings["advertised.listeners"] = ",".join(map(str, (*told, *rest)))
    _quorum(config, index, controllers, settings)
    if config.embedded:
        settings |= {name: str(min(most, count)) for name, most in _INTERNAL.items() if _left_to_us(config, name)}
    dirs = log_dirs
    if index:
        dirs = tuple(folder(each, node_id) for each in log_dirs)
        settings["log.dirs"] = ",".join(dirs)
        if config.metadata_log_dir:
            settings["metadata.log.dir"] = folder(config.metadata_log_dir, node_id)
        if config.tidelog_audit_file:
            settings["tidelog.audit.file"] = f"{config.tidelog_audit_file}.node-{node_id}"
    return Process(node_id, dirs, settings)


def _left_to_us(config: BrokerConfig, name: str) -> bool:
    return name not in config.static and BROKER_OPTIONS[name].inert is None


def _quorum(config: BrokerConfig, index: int, controllers: tuple[EndPoint, ...], settings: dict[str, str]) -> None:
    settings["process.roles"] = "broker,controller" if index == 0 and controllers else "broker"
    if config.embedded:
        (point,) = controllers
        settings["controller.listener.names"] = point.listener
        settings["controller.quorum.voters"] = f"{config.node_id}@{address_text(point.host, point.port)}"
        if _MAP in config.static and point.listener not in config.protocol_map:
            settings[_MAP] = f"{config.static[_MAP]},{point.listener}:PLAINTEXT"
    elif index and controllers and not config.voters and not config.controller_quorum_bootstrap_servers:
        told = {point.listener: point for point in config.advertised_endpoints}
        found = (told.get(point.listener, point) for point in controllers)
        settings["controller.quorum.bootstrap.servers"] = ",".join(address_text(p.host or _LOCAL, p.port) for p in found)


def _shifted(point: EndPoint, shift: int) -> EndPoint:
    """The listener of one process; port 0 stays, and takes a free port in each."""
    port = point.port + shift if point.port else 0
    if port > LAST_PORT:
        raise ConfigError(
            f"{point} leaves no port for each process: with tidelog.processes.port.step a process needs {port}. Choose a lower "
            "port or a smaller step."
        )
    return point._replace(port=port)


def _check_ports(config: BrokerConfig, count: int, controllers: tuple[EndPoint, ...]) -> None:
    """Each port has one use."""
    step = config.tidelog_processes_port_step
    taken: dict[int, str] = {}
    uses = [(point.port, f"{point.listener} of all processes") for point in config.broker_endpoints]
    uses += [(point.port, f"{point.listener} of the controller") for point in controllers]
    for index in range(count):
        uses += [
            (p.port and p.port + step * (index + 1), f"{p.listener} of process {index + 1}") for p in config.broker_endpoints
        ]
    for port, use in uses:
        if port and (other := taken.setdefault(port, use)) is not use:
            raise ConfigError(
                f"Port {port} would be that of {other} and of {use}. Each process listens {step} above the one before: set "
                "another tidelog.processes.port.step, or ports in listeners that are farther apart or nearer together."
            )
