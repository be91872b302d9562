"""``tidelog secure DIR``: a cluster that is locked from its first start; ``tidelog secure rotate DIR``: new certificates."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from tidelog.cli import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidelog.cli.secure.client_files import Login
    from tidelog.cli.secure.node_settings import SecuredNode

DEFAULT_NODES = 3
DEFAULT_PORT = 9092
NODE_DAYS = 365
DAYS = click.IntRange(1, 3650)
dir_argument = click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
days_option = click.option(
    "--days", type=DAYS, default=NODE_DAYS, show_default=True, help="How long the nodes' certificates are valid."
)


class SecureGroup(click.Group):
    """Accepts a folder in place of a subcommand: ``tidelog secure DIR`` is ``tidelog secure make DIR``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = ["make", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["DIR [OPTIONS]", "|", "rotate DIR"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        make.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group("secure", cls=SecureGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Make a cluster that is locked from its first start, in the folder DIR.

    Every listener speaks TLS, with certificates of an authority that is made for this cluster. Nodes show each other their
    certificates; clients log in with a password (SCRAM); ACLs decide what they may do. An administrator with a random password
    is there from the first start, with files for clients in Java, librdkafka and Python.
    """


@command.command()
@dir_argument
@click.option("--nodes", type=click.IntRange(1), default=DEFAULT_NODES, show_default=True, help="How many nodes.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    default=("localhost",),
    metavar="NAME",
    help="The machine of the nodes; once for each node when every node has its own. Further names and addresses for its "
    "certificate follow after commas: a.example.com,10.0.0.1. [localhost]",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True, help="Of the first node, for clients."
)
@click.option("--admin", metavar="NAME", default="admin", show_default=True, help="The administrator, who may do everything.")
@days_option
def make(directory: str, nodes: int, hosts: tuple[str, ...], port: int, admin: str, days: int) -> None:
    """Make the folder; the same as without the word make."""
    from tidelog.cli.secure.making import make as make_folder

    with refusal.one_line("tidelog: "):
        made, login = make_folder(directory, nodes, hosts, port, admin, days)
    print("\n".join(_made_lines(directory, made, login, days)))


def _made_lines(directory: str, nodes: Sequence[SecuredNode], login: Login, days: int) -> list[str]:
    from tidelog.cli.cluster.local_layout import HOST
    from tidelog.cli.secure.client_files import JAVA, LIBRDKAFKA, PYTHON

    count = len(nodes)
    lines = [
        f"{directory} holds a secured cluster of {count} node{'s' if count > 1 else ''}:",
        "  authority/        the certificate authority. authority.key signs certificates: keep it, and off the nodes.",
        f"  node-*/           each node: settings, a certificate for {days} days, a formatted log dir.",
        f"  {JAVA}  the administrator {login.user} for Java, Kafka's tools and tidelog's; holds the password.",
        f"  {LIBRDKAFKA}, {PYTHON}  the same for librdkafka (kcat -F) and for Python.",
        "Every listener speaks TLS. Clients log in with SCRAM-SHA-512, nodes with their certificates. "
        "Without an ACL a user may do nothing.",
        "",
    ]
    if len({node.host for node in nodes}) > 1:
        lines.append("Copy each folder node-N to its machine, to the same path, and nothing else.")
    local = all(node.host == HOST for node in nodes)
    starts = [f"  tidelog start {os.path.abspath(directory)}/{node.folder}/server.properties" for node in nodes]
    lines += [
        "Next:",
        *([f"  tidelog cluster --dir {directory}"] if local else starts),
        f"  tidelog topics --bootstrap-server {nodes[0].address} --command-config {directory}/{JAVA} --create --topic orders",
        f"  tidelog configs --bootstrap-server {nodes[0].address} --command-config {directory}/{JAVA} --alter "
        "--entity-type users --entity-name ann --add-config 'SCRAM-SHA-512=[password=...]'",
    ]
    return lines


@command.command()
@dir_argument
@days_option
def rotate(directory: str, days: int) -> None:
    """Give every node in DIR a new certificate, by the same authority and for the same names."""
    from tidelog.cli.secure.rotation import rotate as renew

    with refusal.one_line("tidelog: "):
        for each in renew(directory, days):
            until = time.strftime("%Y-%m-%d", time.gmtime(each.not_after_ms / 1000))
            print(f"{each.folder} has a new certificate for {each.name}, valid until {until}.")
    print("A node that runs takes it within seconds, others at their next start.")


if __name__ == "__main__":
    command(prog_name="tidelog secure")
