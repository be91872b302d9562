"""``kafka-server-start``: ``tidelog start`` with the words of Kafka's script, ``server.properties --override key=value``."""

from __future__ import annotations

import click

from tidelog.cli import entry, refusal, start


@click.command("server-start", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("properties", type=click.Path(exists=True, dir_okay=False), metavar="server.properties")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A setting that wins over the file.")
@click.option("-daemon", "daemon", is_flag=True, help="Refused: the node stays in the foreground, for a supervisor.")
def command(properties: str, overrides: tuple[str, ...], daemon: bool) -> None:
    """Run a node with the settings of a server.properties."""
    if daemon:
        refusal.usage(
            "-daemon is not done here. Let a supervisor such as systemd run the node, which logs to stderr and stops on SIGTERM; "
            f"or put it into the background: kafka-server-start {properties} > server.log 2>&1 &"
        )
    start.start(properties, overrides, None, None)


def main() -> None:
    """``kafka-server-start``."""
    entry.run(command, "kafka-server-start")


if __name__ == "__main__":
    main()
