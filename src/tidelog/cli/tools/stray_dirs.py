"""``tidelog storage stray``: the stray directories in a node's log dirs, and their removal."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import click

from tidelog.cli import refusal
from tidelog.cli.columns import as_json, output_option
from tidelog.cli.refusal import CommandFailed
from tidelog.console.sizes import size_text
from tidelog.model.ids import uuid_to_text

if TYPE_CHECKING:
    from tidelog.storage.stray_dirs import StrayDir


@click.command("stray")
@click.option(
    "--config", "-c", "properties", required=True, type=click.Path(exists=True, dir_okay=False), help="server.properties"
)
@click.option("--delete", is_flag=True, help="Remove them; asks first.")
@click.option("--yes", is_flag=True, help="With --delete: do not ask.")
@output_option
@click.argument("directories", nargs=-1)
def command(properties: str, delete: bool, yes: bool, output: str, directories: tuple[str, ...]) -> None:
    """Show directories of partitions that the node set aside as stray: what they hold, and why. The node may be running.

    DIRECTORIES: only these, by name or path. [all]
    """
    from tidelog.server.disk import DiskFileSystem
    from tidelog.storage.stray_dirs import find_stray_dirs

    with refusal.one_line("tidelog: "):
        fs = DiskFileSystem()
        try:
            found = _only(list(find_stray_dirs(fs, _log_dirs(properties))), directories)
            print(as_json([_row(each) for each in found]) if output == "json" else _text(found))
            if delete and found and (yes or _agreed(found)):
                for each in found:
                    fs.remove_tree(each.path)
                    print(f"removed {each.path}", file=sys.stderr)
        except OSError as problem:
            raise CommandFailed(str(problem)) from problem


def _log_dirs(properties: str) -> list[str]:
    from tidelog.cli.settings_files import node_config
    from tidelog.server import component_settings

    dirs = component_settings.log_dirs(node_config(properties))
    return [path for path in sorted(dirs) if os.path.isdir(path)]


def _only(found: list[StrayDir], wanted: tuple[str, ...]) -> list[StrayDir]:
    """Those that were named. CommandFailed for a name that is no stray directory."""
    if not wanted:
        return found
    by_name = {os.path.basename(each.path): each for each in found} | {os.path.abspath(each.path): each for each in found}
    chosen = []
    for name in wanted:
        each = by_name.get(name) or by_name.get(os.path.abspath(name))
        if each is None:
            raise CommandFailed(f"{name} is no stray directory in the log dirs of this node. Nothing was removed")
        chosen.append(each)
    return list(dict.fromkeys(chosen))


def _row(each: StrayDir) -> dict[str, object]:
    return {
        "directory": each.path,
        "topic": each.partition.topic,
        "partition": each.partition.partition,
        "topicId": None if each.topic_id is None else uuid_to_text(each.topic_id),
        "segments": each.segments,
        "bytes": each.bytes,
        "firstOffset": each.first_offset,
        "lastWrittenMs": each.written_ms or None,
        "why": each.why,
    }


def _text(found: list[StrayDir]) -> str:
    if not found:
        return "no stray directories"
    return "\n".join(_paragraph(each) for each in found)


def _paragraph(each: StrayDir) -> str:
    topic_id = "unknown topic id" if each.topic_id is None else f"topic id {uuid_to_text(each.topic_id)}"
    segments = f"{each.segments} segment{'s' if each.segments != 1 else ''}"
    holds = "no records"
    if each.bytes:
        written = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.written_ms / 1000))
        holds = f"{size_text(each.bytes)} in {segments} from offset {each.first_offset}, last written {written}"
    return f"{each.path}\n  {each.partition}, {topic_id}: {holds}\n  {each.why}"


def _agreed(found: list[StrayDir]) -> bool:
    if not sys.stdin.isatty():
        raise CommandFailed("nothing was removed: give --yes to remove them without being asked")
    total = size_text(sum(each.bytes for each in found))
    return click.confirm(
        f"Remove {len(found)} director{'ies' if len(found) != 1 else 'y'} with {total} of records?", default=False
    )
