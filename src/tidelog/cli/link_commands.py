"""``tidelog link-commands DIR``: Kafka's command names in one folder, with and without ``.sh`` as in Kafka's ``bin``.

An installation puts ``kafka-topics`` and the like beside ``tidelog``. Scripts written for Apache Kafka call
``bin/kafka-topics.sh``; the links make those paths work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

import click

from tidelog.cli.refusal import CommandFailed, one_line


def kafka_commands() -> list[str]:
    """The ``kafka-*`` commands of this installation, sorted."""
    entries = distribution("tidelog").entry_points
    return sorted(each.name for each in entries if each.group == "console_scripts" and each.name.startswith("kafka-"))


def link(folder: Path, names: Iterable[str], scripts: Path, *, force: bool) -> list[Path]:
    """Links each command in ``scripts`` into ``folder`` under both names; returns the links.

    CommandFailed, before anything is linked, when a command is missing or a link would replace another file.
    """
    wanted = {folder / f"{name}{end}": scripts / name for name in names for end in ("", ".sh")}
    missing = sorted(str(target) for target in set(wanted.values()) if not target.exists())
    if missing:
        raise CommandFailed(f"{missing[0]} does not exist: install tidelog again, its commands are incomplete")
    taken = [path for path, target in wanted.items() if os.path.lexists(path) and not _is_link_to(path, target)]
    if taken and not force:
        raise CommandFailed(f"{taken[0]} exists already: remove it, choose another folder, or replace it with --force")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, target in wanted.items():
            path.unlink(missing_ok=True)
            path.symlink_to(target)
    except OSError as error:
        raise CommandFailed(f"{error.filename2 or error.filename} cannot be made: {error.strerror}") from error
    return list(wanted)


def _is_link_to(path: Path, target: Path) -> bool:
    return path.is_symlink() and path.readlink() == target


@click.command("link-commands", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace files of these names.")
def command(folder: Path, force: bool) -> None:
    """Link Kafka's command names into a folder: kafka-topics, kafka-topics.sh and so on."""
    with one_line("tidelog: "):
        made = link(folder, kafka_commands(), Path(sys.executable).parent, force=force)
        print(f"{len(made)} commands linked in {folder}, for example {made[1]}")
