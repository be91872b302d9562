"""``python -m tidelog.testing.checker FILE...`` checks a history. Exit code 1: it breaks a promise; 2: it cannot be read."""

from __future__ import annotations

import json
import sys

import click

from tidelog.testing.checker import HistoryError, check


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--write-order", is_flag=True, help="Cycles over the order of records count as well.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="json: for programs.")
def main(files: tuple[str, ...], write_order: bool, output: str) -> None:
    """Check a recorded history in one or several FILES."""
    try:
        verdict = check(*files, write_order=write_order)
    except HistoryError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    click.echo(json.dumps(verdict.as_json(), indent=2) if output == "json" else verdict.text())
    sys.exit(0 if verdict.valid else 1)


if __name__ == "__main__":
    main(prog_name="python -m tidelog.testing.checker")
