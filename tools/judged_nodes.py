"""Fresh tidelog nodes for judges: one, or several that are one cluster, all brokers and controllers, each in its own rack."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
START_LIMIT_S = 60
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
OF_SEVERAL = (
    "default.replication.factor=3",
    "min.insync.replicas=1",
    "offsets.topic.replication.factor=3",
    "transaction.state.log.replication.factor=3",
    "transaction.state.log.min.isr=2",
    "share.coordinator.state.topic.replication.factor=3",
    "share.coordinator.state.topic.min.isr=2",
)
"""What the judges expect of three brokers besides: Kafka's defaults for the internal topics, and so many replicas of others."""


USER, PASSWORD = "judge", "judge-secret"
"""Of the listeners with SCRAM-SHA-256."""
SECURED = (
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SCRAM:SASL_PLAINTEXT",
    "inter.broker.listener.name=PLAINTEXT",
    "listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-256",
)


class Addresses(NamedTuple):
    """Bootstrap servers."""

    plain: str
    scram: str = ""
    """Empty without such listeners."""


class NotStarted(Exception):
    """A node did not start; the text has the end of what it printed."""


def environment() -> dict[str, str]:
    """For children: our sources first, and compiled modules are kept, which halves the start of a node."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "TIDELOG_PYTHON": sys.executable}


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _tidelog(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tidelog.cli.main", *arguments]


def _listeners(plain: int, controller: int | None, scram: int | None) -> list[str]:
    """The lines of a node with these ports; None: it has no such listener."""
    ports = {"PLAINTEXT": plain, "CONTROLLER": controller, "SCRAM": scram}
    named = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items() if port is not None}
    advertised = ",".join(at for name, at in named.items() if name != "CONTROLLER")
    lines = [f"listeners={','.join(named.values())}", f"advertised.listeners={advertised}"]
    return lines if scram is None else [*lines, *SECURED]


def properties_of_several(
    settings: Sequence[str], home: Path, ports: Sequence[int], scram: Sequence[int] = ()
) -> list[list[str]]:
    """The lines of each node's server.properties; the second half of ``ports`` is the controllers'. ``scram``: the ports of their
    listeners with SCRAM; empty without."""
    count = len(ports) // 2
    quorum = ",".join(f"127.0.0.1:{port}" for port in ports[count:])
    return [
        [
            *settings,
            *OF_SEVERAL,
            "process.roles=broker,controller",
            f"node.id={number}",
            f"broker.rack=RACK{number + 1}",
            *_listeners(ports[number], ports[count + number], scram[number] if scram else None),
            "controller.listener.names=CONTROLLER",
            f"controller.quorum.bootstrap.servers={quorum}",
            f"log.dirs={home / f'data-{number}'}",
            "tidelog.http.listener=",
        ]
        for number in range(count)
    ]


def initial_controllers(ports: Sequence[int]) -> str:
    """The voters of a new quorum, nodes 0 and up, at these ports."""
    return ",".join(f"{number}@127.0.0.1:{port}:{_directory(number)}" for number, port in enumerate(ports))


def _directory(number: int) -> str:
    """A directory id: 22 letters of base64."""
    return f"judgedDirectory{number:06d}A"


@contextmanager
def nodes(settings: Sequence[str], count: int, *, scram: bool = False) -> Iterator[Addresses]:
    """``count`` fresh nodes. NotStarted, with what they printed, when they do not come up.

    ``scram``: each has a listener besides on which USER logs in with PASSWORD by SCRAM-SHA-256.
    """
    home = Path(tempfile.mkdtemp(prefix="tidelog-judged-"))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        ports = free_ports(3 * count)
        ports, secured = ports[: 2 * count], ports[2 * count :] if scram else []
        if count == 1:
            own = ["node.id=0", "broker.rack=RACK1", *_listeners(ports[0], None, secured[0] if scram else None)]
            overrides = [part for each in [*settings, *own, "tidelog.http.listener="] for part in ("--override", each)]
            commands = [_tidelog("start", "--data", str(home / "data"), *overrides)]
        else:
            commands = []
            for number, lines in enumerate(properties_of_several(settings, home, ports, secured)):
                file = home / f"{number}.properties"
                file.write_text("\n".join(lines) + "\n")
                _format(file, ports[count:])
                commands.append(_tidelog("start", str(file)))
        for number, command in enumerate(commands):
            with (home / f"{number}.log").open("wb") as log:
                processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment()))
        _await([home / f"{number}.log" for number in range(count)], processes)
        plain, logins = (",".join(f"127.0.0.1:{port}" for port in each) for each in (ports[:count], secured))
        if scram:
            _add_user(plain)
        yield Addresses(plain, logins)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(START_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if "TIDELOG_KEEP_JUDGED" not in os.environ:
            shutil.rmtree(home, ignore_errors=True)


def _format(file: Path, controllers: Sequence[int]) -> None:
    wanted = ["-c", str(file), "-t", CLUSTER_ID, "-I", initial_controllers(controllers)]
    done = subprocess.run(_tidelog("format", *wanted), capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        raise NotStarted(f"{file} could not be formatted:\n{done.stdout}{done.stderr}")


def _add_user(addresses: str) -> None:
    change = ["--entity-type", "users", "--entity-name", USER, "--add-config", f"SCRAM-SHA-256=[password={PASSWORD}]"]
    command = _tidelog("configs", "--bootstrap-server", addresses, "--alter", *change)
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        raise NotStarted(f"the user {USER} could not be added:\n{done.stdout}{done.stderr}")


def _await(logs: Sequence[Path], processes: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    for log, process in zip(logs, processes, strict=True):
        while "tidelog is ready" not in (said := log.read_text()):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotStarted(f"the node did not start:\n{said[-2000:]}")
            time.sleep(0.05)
