"""``tidelog``: the command line. Each command has its own module, imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "start": "Run a node.",
    "format": "Prepare log dirs for a node.",
    "storage": "Prepare log dirs, and show their formats.",
    "cluster": "Run a cluster on this machine: tidelog cluster 3.",
    "secure": "Make a cluster with TLS, logins and ACLs.",
    "topics": "Create, list, describe and delete topics.",
    "console-producer": "Send lines of stdin to a topic.",
    "console-consumer": "Print the records of a topic.",
    "console-share-consumer": "Print records as a member of a share group.",
    "consumer-groups": "Describe and delete groups, move offsets.",
    "share-groups": "Describe and delete share groups, move offsets.",
    "streams-groups": "Describe and delete streams groups, move offsets.",
    "groups": "List groups of all types.",
    "why": "Say why a consumer group is stuck.",
    "why-record": "Say why a share group does not deliver a record.",
    "console": "Serve a web console for any Kafka cluster.",
    "transactions": "Show transactions, find and end those that hang.",
    "acls": "Add, remove, list and explain ACLs.",
    "delegation-tokens": "Make, renew, end and list delegation tokens.",
    "configs": "Show and change dynamic settings.",
    "get-offsets": "Print the offsets of partitions.",
    "delete-records": "Delete the records before an offset.",
    "log-dirs": "Show what lies in the log dirs.",
    "broker-api-versions": "Show which requests brokers serve.",
    "metadata-quorum": "Show the metadata quorum, and change who votes in it.",
    "reassign-partitions": "Move replicas between brokers as a file says.",
    "leader-election": "Elect leaders of partitions.",
    "features": "Show and change the levels of features.",
    "rebalance": "Spread replicas, bytes and leaders over the brokers.",
    "drain": "Move everything off a broker.",
    "safe-to-stop": "Say whether a broker may be stopped now.",
    "top": "Show what nodes do now, and for which clients.",
    "producer-perf-test": "Measure how fast records are produced.",
    "consumer-perf-test": "Measure how fast records are consumed.",
    "dump-log": "Print the contents of log, index and snapshot files.",
    "pipeline": "Land topics in tables, each record once.",
    "registry": "Serve a schema registry over a topic.",
    "dashboards": "Write Grafana dashboards and Prometheus alert rules.",
    "random-uuid": "Print a new id, for tidelog format --cluster-id.",
    "link-commands": "Link Kafka's command names into a folder.",
    "completion": "Print what a shell needs to complete flags.",
}
"""Names and one-line descriptions: the help imports no command."""

_ROOMS = {
    "top": "",
    "start": "",
    "pipeline": "",
    "registry": "",
    "completion": "",
    "console": "",
    "dashboards": "",
    "link-commands": "",
    "cluster": "cluster.",
    "secure": "secure.",
    "rebalance": "cluster.",
    "drain": "cluster.",
    "safe-to-stop": "cluster.",
}
_MODULES = {"producer-perf-test": "producer_perf", "consumer-perf-test": "consumer_perf"}


def module_of(command: str) -> str:
    """The module of a command; Kafka's tools are in ``tidelog.cli.tools``."""
    return f"tidelog.cli.{_ROOMS.get(command, 'tools.')}{_MODULES.get(command, command.replace('-', '_'))}"


class LazyGroup(click.Group):
    """Commands by name, imported when one is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(module_of(cmd_name))
        command: click.Command = module.command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The error for an unknown name suggests the closest command."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, 1)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {close[0]}?" if close else ""))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes names without importing any command."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tidelog", prog_name="tidelog")
def main() -> None:
    """Event streaming that speaks Kafka's protocol and writes Kafka's files."""


def run() -> None:
    """The command ``tidelog``."""
    from tidelog.cli import entry

    entry.run(main, "tidelog")


if __name__ == "__main__":
    run()
