"""``tidelog completion``: shell completion for the flags of all tools, under both of their names."""

from __future__ import annotations

from importlib import import_module

import click

from tidelog.cli import server_start
from tidelog.cli.main import COMMANDS, main, module_of

SHELLS = ("bash", "zsh", "fish")
OWN = frozenset(
    {
        "completion",
        "console",
        "dashboards",
        "drain",
        "format",
        "link-commands",
        "pipeline",
        "random-uuid",
        "rebalance",
        "registry",
        "safe-to-stop",
        "secure",
        "start",
        "top",
        "why",
        "why-record",
    }
)
"""Commands without a counterpart among Kafka's tools."""


@click.command("completion", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell: eval "$(tidelog completion bash)"; for fish: tidelog completion fish | source"""
    print(script(shell, "tidelog", main))
    for name in COMMANDS:
        if name not in OWN:
            module = import_module(module_of(name))
            print(script(shell, f"kafka-{name}", module.command))
    print(script(shell, "kafka-server-start", server_start.command))


def script(shell: str, program: str, cli: click.Command) -> str:
    """The script for one program, as click generates it."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    return kind(cli, {}, program, f"_{program.replace('-', '_').upper()}_COMPLETE").source()
