"""``python -m demo``: what is asked for, what is missing, and the end: tables, a plot, an exit status."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from tidelog.model.errors import ConfigError
from tidelog.pipeline.session import ensure_java
from tidelog.spark.versions import check_versions

NEEDED = ("pyspark", "pyarrow", "yaml", "fastavro", "matplotlib")
INSTALL = "pip install 'tidelog[demo]', or let `make demo` do it"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seconds", default=60, show_default=True, type=click.IntRange(3, 3600), help="How long the generator sends.")
@click.option("--rate", default=400, show_default=True, type=click.IntRange(20, 20000), help="Records each second.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same evening.")
@click.option("--keep", is_flag=True, help="Leave node, tables and logs where they are, and say where that is.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where to keep them; with --keep.")
@click.option("--no-view", is_flag=True, help="Plain lines, as where there is no terminal.")
@click.option("--plot", default="surge-by-zone.png", show_default=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--check", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Only count again what was kept there."
)
def main(
    seconds: int, rate: int, seed: int, keep: bool, folder: Path | None, no_view: bool, plot: Path, check: Path | None
) -> None:
    """A ride-hailing company for a minute. The exit status is 0 only if all records are where they belong."""
    try:
        check_installed()
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    console = Console(width=None if sys.stdout.isatty() else 120)
    signal.signal(signal.SIGTERM, _interrupt)
    begin = time.monotonic()
    if check is not None:
        sys.exit(_count_again(check, console))
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise click.ClickException(f"{folder} is not empty: name another folder.")
    place = folder or Path(tempfile.mkdtemp(prefix="tidelog-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    status = 1
    try:
        status = _play(place, seconds, rate, seed, console, plot, view=not no_view)
        console.print(f"{time.monotonic() - begin:.0f} seconds")
    except KeyboardInterrupt:
        status = 130
        console.print("stopped")
    finally:
        if keep or status == 1:
            console.print(f"node, tables and logs: {place}", soft_wrap=True, highlight=False)
        else:
            shutil.rmtree(place, ignore_errors=True)
    sys.exit(status)


def check_installed() -> None:
    """ConfigError says what is missing and what to do."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"The demo needs {', '.join(missing)}: {INSTALL}.")
    check_versions()
    ensure_java(os.environ)


def _play(place: Path, seconds: int, rate: int, seed: int, console: Console, plot: Path, *, view: bool) -> int:
    from demo.plot import draw
    from demo.stage import DemoFailed, Play, play
    from demo.view import view_for

    try:
        with view_for(console, wanted=view) as shown:
            outcome = play(Play(place, seconds, rate, seed), shown)
    except (ConfigError, DemoFailed) as error:
        console.print(f"Error: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    status = _tell(outcome, console)
    draw(outcome.surges, plot)
    console.print(f"surge by zone and minute: {plot}", soft_wrap=True, highlight=False)
    return status


def _count_again(folder: Path, console: Console) -> int:
    from demo.stage import count_again

    if not (folder / "ledger.json").exists():
        raise click.ClickException(f"{folder} has no ledger.json: it is no folder that a demo with --keep ended in.")
    return _tell(count_again(folder), console)


def _tell(outcome: object, console: Console) -> int:
    from demo.stage import Outcome
    from demo.view import books_table, lines_table

    assert isinstance(outcome, Outcome)
    console.print(books_table(outcome.rows, len(outcome.surges)))
    console.print(lines_table(outcome.lines))
    wrong = [line for line in outcome.lines if not line.holds]
    console.print(
        f"{len(wrong)} of {len(outcome.lines)} do not hold" if wrong else "It all adds up.", style="red" if wrong else "green"
    )
    return 1 if wrong else 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends it as Ctrl-C does."""
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    main(prog_name="make demo")
