"""``kafka-cluster`` and the same subcommands of ``tidelog cluster``: cluster id, endpoints, unregistering brokers."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from tidelog.cli import entry, refusal
from tidelog.cli.controller_session import ControllerSession, Session, session, target, target_options

cluster_options = partial(target_options, old=("--config",))
TITLES = ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")
WIDTHS = (10, 9, 10, 10, 10, 15)


@click.group("kafka-cluster", context_settings={"help_option_names": ["-h", "--help"]})
def group() -> None:
    """Show what a cluster is, and forget a broker."""


@group.command("cluster-id")
@cluster_options
def cluster_id(bootstrap_server: str | None, bootstrap_controller: str | None, command_config: str | None) -> None:
    """Print the id of the cluster."""
    with refusal.one_line(""), session(*target(bootstrap_server, bootstrap_controller), command_config) as connected:
        print(f"Cluster ID: {_described(connected).cluster_id}")


@group.command()
@cluster_options
@click.option("--id", "-i", "broker_id", type=int, required=True, help="The broker's id.")
def unregister(
    bootstrap_server: str | None, bootstrap_controller: str | None, command_config: str | None, broker_id: int
) -> None:
    """Forget a broker that will not come back. Move its replicas away first: tidelog drain."""
    from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest

    with refusal.one_line(""), session(*target(bootstrap_server, bootstrap_controller), command_config) as connected:
        response = connected.ask(UnregisterBrokerRequest(broker_id=broker_id))
        refusal.check(response.error_code, response.error_message)
        print(f"Broker {broker_id} is no longer registered.")


@group.command("list-endpoints")
@cluster_options
@click.option("--include-fenced-brokers", is_flag=True, help="Also brokers that are registered and not there.")
def list_endpoints(
    bootstrap_server: str | None, bootstrap_controller: str | None, command_config: str | None, include_fenced_brokers: bool
) -> None:
    """Show where brokers, or controllers, listen."""
    if include_fenced_brokers and bootstrap_controller:
        refusal.usage("--include-fenced-brokers asks a broker: give --bootstrap-server, not --bootstrap-controller")
    with refusal.one_line(""), session(*target(bootstrap_server, bootstrap_controller), command_config) as connected:
        described = _described(connected, include_fenced_brokers)
        print(table(described.brokers, "controller" if isinstance(connected, ControllerSession) else "broker"))


def _described(connected: Session, fenced: bool = False) -> Any:
    from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest

    if isinstance(connected, ControllerSession):
        return connected.cluster
    response = connected.ask(DescribeClusterRequest(include_fenced_brokers=fenced))
    refusal.check(response.error_code, response.error_message)
    return response


def table(nodes: list[Any], kind: str) -> str:
    """The table in Kafka's columns; controllers have no state."""
    shown = [
        (
            str(node.broker_id),
            node.host,
            str(node.port),
            node.rack or "null",
            "fenced" if node.is_fenced else "unfenced",
            kind,
        )
        for node in sorted(nodes, key=lambda node: node.broker_id)
    ]
    rows = [row if kind == "broker" else row[:4] + row[5:] for row in (TITLES, *shown)]
    host = max(len(row[1]) for row in rows)
    rack = max(len(row[3]) for row in rows) if kind == "broker" else WIDTHS[3]
    widths = [WIDTHS[0], host, WIDTHS[2], rack, *(WIDTHS[4:] if kind == "broker" else WIDTHS[5:])]
    return "\n".join(" ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)


def main() -> None:
    """``kafka-cluster``."""
    entry.run(group, "kafka-cluster")


if __name__ == "__main__":
    main()
