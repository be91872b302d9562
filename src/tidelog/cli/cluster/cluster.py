"""``tidelog cluster N`` runs a cluster on one machine; its subcommands include those of ``kafka-cluster``, for any cluster.

``tidelog cluster 3`` creates three nodes in ``./cluster`` and runs them until Ctrl-C. The same command later resumes them, and a
higher number adds nodes. The other subcommands are for a second terminal. How the nodes run is in ``local_supervisor``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import columns, refusal
from tidelog.cli.cluster.local_controller import active_controller
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import kafka_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidelog.cli.cluster.local_layout import LocalCluster
    from tidelog.cli.cluster.local_nodes import NodeFolder

DEFAULT_DIR = "cluster"
DEFAULT_NODES = 3
DEFAULT_PORT = 9092
CONSOLE = "127.0.0.1:8080"
WAIT_S = 120.0
POLL_S = 0.2
dir_option = click.option(
    "--dir", "directory", default=DEFAULT_DIR, show_default=True, metavar="DIR", help="Where the cluster's files are."
)


class ClusterGroup(click.Group):
    """Accepts a number or flags in place of a subcommand: ``tidelog cluster 3`` is ``tidelog cluster run 3``, and ``--dir X
    status`` is ``status --dir X``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if len(args) > 2 and args[0] == "--dir" and args[2] in self.commands:
            args = [args[2], *args[:2], *args[3:]]
        elif len(args) > 1 and args[0].startswith("--dir=") and args[1] in self.commands:
            args = [args[1], args[0], *args[2:]]
        first = args[0] if args else ""
        if first not in self.commands and first not in {"-h", "--help"} and not (first and first[0].isalpha()):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("cluster", cls=ClusterGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Run a cluster on this machine: tidelog cluster 3. Or ask any cluster what it is."""


@command.command()
@click.argument("count", required=False, type=click.IntRange(min=1))
@dir_option
@click.option("--port", type=click.IntRange(1, 65535), help=f"Of the first node. [{DEFAULT_PORT}]")
@click.option("--racks", metavar="A,B,...", help="Racks for the nodes, in turn. [none]")
@click.option(
    "--override", "-o", "overrides", multiple=True, metavar="KEY=VALUE", help="A setting of all nodes that are made now."
)
@click.option("--secure", is_flag=True, help="Make it with TLS, logins and ACLs, as tidelog secure does.")
@click.option(
    "--console", is_flag=False, flag_value=CONSOLE, metavar="[HOST:PORT]", help=f"Serve the web console, too. [{CONSOLE}]"
)
def run(
    count: int | None,
    directory: str,
    port: int | None,
    racks: str | None,
    overrides: tuple[str, ...],
    secure: bool,
    console: str | None,
) -> None:
    """Run COUNT nodes until Ctrl-C: made when the folder is new, else those that are there, and more if COUNT is higher."""
    from tidelog.cli.cluster.local_nodes import NodeFolder
    from tidelog.cli.cluster.local_supervisor import Supervisor
    from tidelog.config.properties import parse_overrides

    with refusal.one_line("tidelog: "):
        names = tuple(name.strip() for name in (racks or "").split(",") if name.strip())
        if console is not None:
            from tidelog.cli.cluster import local_console

            local_console.check(console, directory, port or DEFAULT_PORT, secure)
        if secure:
            _secured(directory, count or DEFAULT_NODES, port or DEFAULT_PORT, names, overrides)
        cluster = prepare(directory, count, port, names, parse_overrides(overrides))
        running = [node.id for node in cluster.nodes if NodeFolder(directory, node).pid() is not None]
        if running:
            ids = ", ".join(map(str, running))
            raise CommandFailed(
                f"Node {ids} of the cluster in {directory} runs already. Stop it first: {_other('stop', directory)}"
            )
        supervisor = Supervisor(directory, cluster, _say, console)
        code = supervisor.run()
    sys.exit(code)


def _say(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError:
        # Python flushes the buffered output at exit; it needs a target.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def prepare(
    directory: str, count: int | None, port: int | None, racks: tuple[str, ...], settings: dict[str, str]
) -> LocalCluster:
    """Creates or grows the cluster in the folder and prepares all nodes for their start. CommandFailed when it has more nodes
    already."""
    from tidelog.cli.cluster.local_layout import load, new_cluster, save
    from tidelog.cli.cluster.local_nodes import NodeFolder, new_id

    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise CommandFailed(f"{directory} cannot be the cluster's folder: {error.strerror}") from error
    cluster = load(directory)
    if cluster is None:
        made = new_cluster(new_id(), count or DEFAULT_NODES, port or DEFAULT_PORT, racks, settings)
        cluster = replace(made, nodes=tuple(replace(node, directory_id=new_id()) for node in made.nodes))
        if not _is_empty(directory):
            raise CommandFailed(f"{directory} holds other things already. Name an empty folder: --dir DIR")
    elif count is not None and count < len(cluster.nodes):
        last = cluster.nodes[-1].id
        raise CommandFailed(
            f"The cluster in {directory} has {len(cluster.nodes)} nodes. To have fewer, move what they hold away and take them "
            f"out while it runs: tidelog drain {last} --bootstrap-server {cluster.nodes[0].address}, then "
            f"{_other(f'remove {last}', directory)}"
        )
    else:
        cluster = _changed(directory, cluster, count or len(cluster.nodes), port, racks, settings)
    for node in cluster.nodes:
        NodeFolder(directory, node).prepare(cluster)
    save(directory, cluster)
    return cluster


def _secured(directory: str, count: int, port: int, racks: tuple[str, ...], overrides: tuple[str, ...]) -> None:
    """Makes a new cluster with certificates, logins and ACLs; one that is there has to be such a cluster."""
    from tidelog.cli.cluster.local_layout import load

    cluster = load(directory)
    if cluster is None:
        if racks or overrides:
            raise CommandFailed(
                f"--secure takes neither --racks nor -o. Make the cluster with tidelog secure {directory} --nodes {count}, edit "
                f"its server.properties, and run it: tidelog cluster --dir {directory}"
            )
        from tidelog.cli.secure.making import make
        from tidelog.cli.secure.secure import NODE_DAYS

        make(directory, count, ("localhost",), port, "admin", NODE_DAYS)
    elif cluster.client_file is None:
        raise CommandFailed(f"The cluster in {directory} was made without --secure. Name another folder: --dir DIR")
    else:
        from tidelog.cli.secure.enforcement import refuse_dry_runs

        refuse_dry_runs(directory)


def _changed(
    directory: str, cluster: LocalCluster, count: int, port: int | None, racks: tuple[str, ...], settings: dict[str, str]
) -> LocalCluster:
    """An existing cluster with more nodes; new settings and racks apply to the new nodes. Prints what has no effect."""
    from tidelog.cli.cluster.local_layout import grown

    before = len(cluster.nodes)
    if port is not None and port != cluster.port:
        print(f"--port {port} is ignored: the cluster in {directory} begins at port {cluster.port}.", file=sys.stderr)
    new = {name: value for name, value in settings.items() if cluster.settings.get(name) != value}
    if new or (racks and racks != cluster.racks):
        what = ", ".join(
            [*(f"-o {name}={value}" for name, value in new.items()), *(["--racks"] if racks != cluster.racks and racks else [])]
        )
        files = os.path.join(directory, "node-*", "server.properties")
        there = "the node that is" if before == 1 else f"the {before} nodes that are"
        who = f"{there} there" if count > before else "this cluster"
        print(f"{what}: not for {who}, whose settings are in {files}.", file=sys.stderr)
    return grown(replace(cluster, settings={**cluster.settings, **settings}, racks=racks or cluster.racks), count)


def _is_empty(directory: str) -> bool:
    return not os.listdir(directory)


def _other(words: str, directory: str) -> str:
    return f"tidelog cluster {words}" + (f" --dir {directory}" if directory != DEFAULT_DIR else "")


def _loaded(directory: str) -> LocalCluster:
    from tidelog.cli.cluster.local_layout import load

    cluster = load(directory)
    if cluster is None:
        raise CommandFailed(f"There is no cluster in {directory}. Make one: {_other('3', directory)}")
    return cluster


def _supervisor(directory: str) -> int | None:
    """The process that runs the cluster; None when there is none."""
    from tidelog.cli.cluster.local_supervisor import who_runs

    return who_runs(directory)


@command.command()
@dir_option
@columns.output_option
def status(directory: str, output: str) -> None:
    """Show the nodes, whether they run, and whether all partitions are in sync."""
    from tidelog.cli.cluster.local_nodes import NodeFolder

    with refusal.one_line("tidelog: "):
        cluster = _loaded(directory)
        folders = [NodeFolder(directory, node) for node in cluster.nodes]
        rows, behind = _rows(cluster, folders)
    if output == "json":
        print(columns.as_json({"clusterId": cluster.cluster_id, "nodes": rows, "underReplicated": behind}))
        return
    shown = [columns.Column(title, key, 10) for title, key in (("NODE", "node"), ("ROLES", "roles"), ("ADDRESS", "address"))]
    shown += [columns.Column(title, key, 8) for title, key in (("RACK", "rack"), ("PID", "pid"), ("LEADS", "leads"))]
    shown.append(columns.Column("STATE", "state", 8, pad=False))
    print(columns.table(shown, rows))
    places = [f"http://{row['http']}" for row in rows if row["http"] is not None]
    if places:
        print(f"/metrics and /healthz: {' '.join(places)}")
    if behind is not None:
        print("All partitions are in sync." if not behind else f"{behind} partition(s) lack replicas in sync.")


def _rows(cluster: LocalCluster, folders: Sequence[NodeFolder]) -> tuple[list[dict[str, Any]], int | None]:
    """A row for each node, and the number of partitions with replicas out of sync, None when no node answers."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.cluster.cluster_layout import see
    from tidelog.cli.refusal import CannotConnect
    from tidelog.cli.tools.metadata_quorum import quorum

    seen, there, active = None, {}, -1
    pids = {folder.node.id: folder.pid() for folder in folders}
    suspended = {folder.node.id for folder in folders if folder.suspended()}
    # A suspended process accepts connections but does not answer.
    up = ",".join(node.address for node in cluster.nodes if pids[node.id] is not None and node.id not in suspended)
    if up:
        try:
            with AdminSession(up, cluster.client_file) as session:
                seen, there, active = see(session), session.brokers(), quorum(session)[0].leader_id
        except (CannotConnect, CommandFailed):
            seen = None
    rows = [
        {
            "node": node.id,
            "roles": "both" if node.controller else "broker",
            "address": node.address,
            "rack": node.rack,
            "pid": pids[node.id],
            "leads": None if seen is None or node.id not in there else sum(each.leader == node.id for each in seen),
            "state": "suspended" if node.id in suspended else _state(pids[node.id], node.id in there, node.id == active),
            "http": folder.http_address(),
        }
        for node, folder in zip(cluster.nodes, folders, strict=True)
    ]
    return rows, None if seen is None else sum(len(each.in_sync) < len(each.replicas) for each in seen)


def _state(pid: int | None, serves: bool, active: bool) -> str:
    if pid is None:
        return "down"
    return "starting" if not serves else "serves, active controller" if active else "serves"


@command.command()
@click.argument("nodes", nargs=-1, type=int)
@dir_option
def stop(nodes: tuple[int, ...], directory: str) -> None:
    """Stop the whole cluster, or some NODES of it."""
    from tidelog.cli.cluster.local_nodes import STOP, NodeFolder

    with refusal.one_line("tidelog: "):
        cluster = _loaded(directory)
        supervisor = _supervisor(directory)
        chosen = [NodeFolder(directory, cluster.node(each)) for each in nodes or [node.id for node in cluster.nodes]]
        if supervisor is not None and not nodes:
            os.kill(supervisor, signal.SIGTERM)
        for folder in chosen:
            if supervisor is None:
                folder.stop()
            elif nodes:
                folder.ask(STOP)
        _until(lambda: all(folder.pid() is None for folder in chosen), "The nodes did not stop")
        print("Stopped.")


@command.command()
@click.argument("nodes", nargs=-1, type=int)
@dir_option
@click.option("--wait", "seconds", type=float, default=WAIT_S, show_default=True, help="How long to wait for replicas in sync.")
def restart(nodes: tuple[int, ...], directory: str, seconds: float) -> None:
    """Restart all NODES, or those that are named, one after another; each waits until the cluster can spare it."""
    with refusal.one_line("tidelog: "):
        cluster = _loaded(directory)
        if _supervisor(directory) is None:
            raise CommandFailed(
                f"The cluster in {directory} is not running. Start it: {_other(str(len(cluster.nodes)), directory)}"
            )
        for node in nodes or active_last(cluster):
            restart_one(cluster, directory, node, seconds)
        _lead_again(cluster)


def active_last(cluster: LocalCluster) -> list[int]:
    """The nodes by id, but the active controller last: the controller then moves once, not with every restart of an active
    one."""
    ids = [node.id for node in cluster.nodes]
    active = active_controller(cluster)
    return [*(each for each in ids if each != active), active] if active in ids else ids


def _lead_again(cluster: LocalCluster) -> None:
    """Runs preferred leader elections: the restarts moved the leaders to other nodes."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.tools.leader_election import elect

    with AdminSession(cluster.bootstrap, cluster.client_file) as session:
        elect(session, "PREFERRED", None, say=False)


def restart_one(cluster: LocalCluster, directory: str, node_id: int, seconds: float) -> None:
    """Restarts a node when the others can do without it; returns when it serves and is in sync again."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.cluster.local_nodes import RESTART, NodeFolder
    from tidelog.cli.cluster.safe_to_stop import wait_until_safe

    folder = NodeFolder(directory, cluster.node(node_id))
    before = folder.pid()
    others = ",".join(node.address for node in cluster.nodes if node.id != node_id)
    if before is not None and others:
        with AdminSession(others, cluster.client_file) as session:
            verdict = wait_until_safe(session, node_id, seconds)
        if verdict.wait_for:
            raise CommandFailed(f"Node {node_id} cannot be spared: {verdict.wait_for[0]}.")
        for text in verdict.unavoidable[:3]:
            print(f"Note: {text}", file=sys.stderr)
    folder.ask(RESTART)
    _until(lambda: _has_new_pid(folder, before), f"Node {node_id} was not started again")
    _until(lambda: _in_sync(cluster, node_id) or _ended(folder), f"Node {node_id} was started, and is not in sync", seconds)
    print(f"Node {node_id} was {'restarted' if before is not None else 'started'}, and is in sync.", flush=True)


def _has_new_pid(folder: NodeFolder, before: int | None) -> bool:
    return folder.pid() not in {None, before}


def _ended(folder: NodeFolder) -> bool:
    """CommandFailed when the node has ended instead: nothing will start it again."""
    if folder.pid() is None and not (folder.path / "pid").exists():
        raise CommandFailed(f"Node {folder.node.id} ended as soon as it was started; its last words are in {folder.log}.")
    return False


def _in_sync(cluster: LocalCluster, node_id: int) -> bool:
    """Whether a node serves and is in the ISR of all its partitions."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.cluster.cluster_layout import see
    from tidelog.cli.refusal import CannotConnect

    try:
        with AdminSession(cluster.node(node_id).address, cluster.client_file) as session:
            seen = see(session)
            return node_id in session.brokers() and all(node_id in each.in_sync for each in seen if node_id in each.replicas)
    except (CannotConnect, CommandFailed):
        return False


def _until(condition: Any, otherwise: str, seconds: float = WAIT_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise CommandFailed(f"{otherwise} within {seconds:.0f} s.")
        time.sleep(POLL_S)


@command.command()
@click.argument("count", type=click.IntRange(min=1), default=1)
@dir_option
def add(count: int, directory: str) -> None:
    """Add COUNT nodes, while the cluster runs; tidelog rebalance gives them their share."""
    with refusal.one_line("tidelog: "):
        before = _loaded(directory)
        cluster = prepare(directory, len(before.nodes) + count, before.port, before.racks, {})
        new = cluster.nodes[len(before.nodes) :]
        for node in new:
            print(f"Node {node.id} is added at {node.address}.")
        if _supervisor(directory) is not None:
            for node in new:
                _until(lambda node=node: _in_sync(cluster, node.id), f"Node {node.id} does not serve")
            print(f"It serves. Give it its share: tidelog rebalance --bootstrap-server {cluster.nodes[0].address}")


@command.command()
@click.argument("node_id", metavar="NODE", type=int)
@dir_option
def remove(node_id: int, directory: str) -> None:
    """Take a drained node out of the cluster that runs: stopped and forgotten; its files stay."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.cluster.cluster_layout import see
    from tidelog.cli.cluster.local_layout import save, without
    from tidelog.cli.cluster.local_nodes import NodeFolder
    from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest

    with refusal.one_line("tidelog: "):
        cluster = _loaded(directory)
        left = without(cluster, node_id)
        with AdminSession(left.bootstrap, left.client_file) as session:
            held = sum(node_id in each.replicas for each in see(session))
            if held:
                raise CommandFailed(
                    f"Node {node_id} holds {held} replica(s). Move them away first: tidelog drain {node_id} --bootstrap-server "
                    f"{left.nodes[0].address}"
                )
            save(directory, left)
            folder = NodeFolder(directory, cluster.node(node_id))
            if _supervisor(directory) is None:
                folder.stop()
            _until(lambda: folder.pid() is None, f"Node {node_id} did not stop")
            response = session.ask(UnregisterBrokerRequest(broker_id=node_id))
            refusal.check(response.error_code, response.error_message)
        print(f"Node {node_id} is out of the cluster. Its files are in {folder.path}.")


for _command in kafka_cluster.group.commands.values():
    command.add_command(_command)


if __name__ == "__main__":
    command(prog_name="tidelog cluster")
