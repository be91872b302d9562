"""``tidelog storage``, also installed as ``kafka-storage``: prepares and shows the log dirs of a node, with the subcommands of
Kafka's tool, and ``stray``. ``tidelog format`` and ``tidelog random-uuid`` are two of them; those about features come from
``tidelog features``."""

from __future__ import annotations

import os
import sys

import click

from tidelog.cli import entry, refusal
from tidelog.cli.tools import features, random_uuid, stray_dirs
from tidelog.cli.tools import format as formatting
from tidelog.model.ids import uuid_to_text


@click.group("storage", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Prepare and show the log dirs of a node."""


@command.command()
@click.option(
    "--config", "-c", "properties", required=True, type=click.Path(exists=True, dir_okay=False), help="server.properties"
)
def info(properties: str) -> None:
    """Show what the log dirs are formatted for: exit code 1 where something is wrong."""
    from tidelog.cli.settings_files import node_config
    from tidelog.server import component_settings

    with refusal.one_line("tidelog: "):
        dirs = sorted(component_settings.log_dirs(node_config(properties)))
        there = [path for path in dirs if os.path.isdir(path)]
        found, problems = _formatted(there)
    problems = [f"{path} does not exist" for path in dirs if path not in there] + problems
    _list("Found log directory:", "Found log directories:", there)
    for text in found[:1]:
        print(f"Found metadata: {text}\n")
    _list("Found problem:", "Found problems:", problems)
    sys.exit(1 if problems else 0)


def _formatted(dirs: list[str]) -> tuple[list[str], list[str]]:
    """The identity stored in each formatted dir, and the problems found."""
    from tidelog.server.disk import DiskFileSystem
    from tidelog.storage.checkpoints import META_PROPERTIES, BadCheckpoint, read_meta_properties

    fs = DiskFileSystem()
    found: list[str] = []
    problems: list[str] = []
    owner: tuple[str, int] | None = None
    for path in dirs:
        try:
            meta = read_meta_properties(fs, path)
        except BadCheckpoint as error:
            problems.append(f"{path}/{META_PROPERTIES} cannot be read: {error}")
            continue
        if meta is None:
            problems.append(f"{path} is not formatted.")
            continue
        owner = owner or (meta.cluster_id, meta.node_id)
        if (meta.cluster_id, meta.node_id) != owner:
            others = f"others are of node {owner[1]} of cluster {owner[0]}"
            problems.append(f"{path} is of node {meta.node_id} of cluster {meta.cluster_id}, {others}")
        directory = "" if meta.directory_id is None else f"directory.id={uuid_to_text(meta.directory_id)}, "
        found.append(f"{{cluster.id={meta.cluster_id}, {directory}node.id={meta.node_id}, version=1}}")
    return found, problems


def _list(one: str, several: str, lines: list[str]) -> None:
    if lines:
        print("\n".join([one if len(lines) == 1 else several, *(f"  {line}" for line in lines)]) + "\n")


command.add_command(formatting.command)
command.add_command(random_uuid.command)
command.add_command(features.version_mapping)
command.add_command(features.feature_dependencies)
command.add_command(stray_dirs.command)


def main() -> None:
    """``kafka-storage``."""
    entry.run(command, "kafka-storage")


if __name__ == "__main__":
    main()
