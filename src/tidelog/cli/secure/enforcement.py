"""A secured cluster enforces its ACLs: a node that only says what it would deny is refused."""

from __future__ import annotations

from pathlib import Path

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.secure.node_settings import SETTINGS
from tidelog.config.properties import parse

DRY_RUN = "tidelog.authorizer.dry.run"


def refuse_dry_runs(directory: str) -> None:
    """CommandFailed when the settings of a node in this folder turn the dry run of the authorizer on, or cannot be read.
    ConfigError for settings that are none."""
    for path in sorted(Path(directory).glob(f"node-*/{SETTINGS}")):
        try:
            settings = parse(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise CommandFailed(f"{path} cannot be read: {error.strerror}") from error
        if settings.get(DRY_RUN, "").strip().lower() == "true":
            raise CommandFailed(f"{path} sets {DRY_RUN}=true, so every client may do everything there. Remove it first.")
