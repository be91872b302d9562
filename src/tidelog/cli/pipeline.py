"""``tidelog pipeline``: topics into tables. Commands that need Spark import it when they run."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.pipeline.model import PipelineModel

FILE = "pipeline.yaml"
REASONS_SHOWN = 10
PREVIEW_WIDTH = 40
"""Characters of a value that a preview shows."""
_TIMES = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d")
_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("pipeline", context_settings=_HELP)
def command() -> None:
    """Topics into tables, each record once. Guide: docs/guide/pipeline.md."""


@command.command("init", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path(dir_okay=False))
@click.option("--bootstrap-server", default="localhost:9092", show_default=True, help="The brokers to connect to first.")
@click.option("--topic", default="events", show_default=True, help="The topic to read.")
def init(file: str, bootstrap_server: str, topic: str) -> None:
    """Write a pipeline to begin with."""
    from tidelog.pipeline.example import example

    path = Path(file)
    if path.exists():
        raise click.ClickException(f"{file} is there already; name another file.")
    path.write_text(example(topic, bootstrap_server))
    print(f"{file} is written. Next: tidelog pipeline run {file} --once")


@command.command("validate", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path())
def validate(file: str) -> None:
    """Check a pipeline without running it: needs no broker and no registry. SQL is parsed where PySpark is installed."""
    from tidelog.pipeline.flows import flows
    from tidelog.pipeline.validating import validated

    # The pipeline's functions are in a module beside its file.
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        found = flows(validated(file, lambda text: print(text, file=sys.stderr)))
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    for flow in found:
        sinks = ", ".join(sink.name for sink in flow.sinks) or "dead letters only"
        print(f"{' + '.join(source.name for source in flow.sources)} -> {sinks}")
    print(f"{file} is right.")


@command.command("run", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path())
@click.option("--once", "once", is_flag=True, help="Read what is there, then end.")
@click.option("--continuous", "continuous", is_flag=True, help="Go on until stopped. The default.")
@click.option("--realtime", "realtime", is_flag=True, help="In Spark's real-time mode, topic to topic: for engine: jvm.")
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve Prometheus metrics on this port.")
@click.option(
    "--from-here", multiple=True, metavar="SINK", help="A sink that may lack what was before: it is new, or was emptied."
)
def run(file: str, once: bool, continuous: bool, realtime: bool, metrics_port: int | None, from_here: tuple[str, ...]) -> None:
    """Run a pipeline. SIGINT, SIGTERM and SIGHUP end it after the current batch; the next run resumes there."""
    if once + continuous + realtime > 1:
        raise click.UsageError("--once, --continuous and --realtime exclude each other.")
    model = _load(file)
    if realtime != (model.engine == "jvm"):
        raise click.UsageError(
            "--realtime is for a pipeline with engine: jvm, and that runs in no other way: topics into topics, each record at "
            f"least once. {file} says engine: {model.engine}."
        )
    from tidelog.pipeline.failures import PipelineFailure, sentence

    try:
        from tidelog.pipeline.running import Run, stop_on_signals
        from tidelog.pipeline.session import session_for

        spark = session_for(model)
        running = Run(model, spark, lambda text: print(text, flush=True), metrics_port)
        stop_on_signals(running)
        summary = running.run(once=once, from_here=frozenset(from_here))
    except (ConfigError, PipelineFailure) as error:
        raise click.ClickException(str(error)) from None
    except Exception as error:
        # Spark wraps exceptions of our code on executors and in callbacks; a traceback through its gateway does not help.
        raise click.ClickException(sentence(error)) from error
    print(
        f"{summary.records:,} records read, {summary.undecodable:,} undecodable, {summary.broken:,} broke a rule"
        + (", stopped" if summary.stopped else "")
    )


@command.command("preview", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path())
@click.option("--records", default=100, show_default=True, type=click.IntRange(1), help="Read so many of each source's newest.")
@click.option("--rows", default=10, show_default=True, type=click.IntRange(1), help="Show so many of each source and transform.")
def preview_rows(file: str, records: int, rows: int) -> None:
    """Show what the newest records become: decoded, and after each transform. Writes nothing."""
    model = _load(file)
    from tidelog.pipeline.failures import PipelineFailure, sentence

    try:
        from tidelog.pipeline.previewing import preview
        from tidelog.pipeline.session import session_for

        for shown in preview(model, session_for(model), records):
            print(f"{shown.name}: {shown.rows.count():,} rows", flush=True)
            for problem in shown.problems:
                print(f"  {problem}", flush=True)
            shown.rows.show(rows, truncate=PREVIEW_WIDTH)
    except (ConfigError, PipelineFailure) as error:
        raise click.ClickException(str(error)) from None
    except Exception as error:
        raise click.ClickException(sentence(error)) from error


@command.command("replay-dlq", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path())
def replay_dlq(file: str) -> None:
    """Decode dead letters again after a fix: those that are good now land in the sinks, once, and leave the dead letters."""
    model = _load(file)
    from tidelog.pipeline.failures import PipelineFailure, sentence

    try:
        from tidelog.pipeline.replaying import replay
        from tidelog.pipeline.session import session_for

        for found in replay(model, session_for(model)):
            print(f"{found.source}: {found.landed:,} landed, {found.left:,} still cannot be decoded")
            for reason, count in list(found.reasons.items())[:REASONS_SHOWN]:
                print(f"  {count:,}  {reason}")
            if len(found.reasons) > REASONS_SHOWN:
                print(f"  ... and {len(found.reasons) - REASONS_SHOWN:,} more reasons: column error of the dead letters")
    except (ConfigError, PipelineFailure) as error:
        raise click.ClickException(str(error)) from None
    except Exception as error:
        raise click.ClickException(sentence(error)) from error


@command.command("backfill", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path())
@click.option("--from", "from_", required=True, type=click.DateTime(_TIMES), help="Records from this time on, UTC.")
@click.option("--to", "to", type=click.DateTime(_TIMES), help="Up to this time, UTC; without it up to now.")
def backfill_range(file: str, from_: datetime, to: datetime | None) -> None:
    """Put records of a time range into Delta and HBase tables that lack them; may run beside the pipeline, and again."""
    model = _load(file)
    from tidelog.pipeline.failures import PipelineFailure, sentence

    try:
        from tidelog.pipeline.backfilling import backfill
        from tidelog.pipeline.session import session_for

        begin, end = (None if when is None else int(when.replace(tzinfo=UTC).timestamp() * 1000) for when in (from_, to))
        for found in backfill(model, session_for(model), begin or 0, end):
            without = f"; left out, not to be filled in: {', '.join(found.left_out)}" if found.left_out else ""
            print(f"{found.source}: {found.records:,} records read again{without}")
    except (ConfigError, PipelineFailure) as error:
        raise click.ClickException(str(error)) from None
    except Exception as error:
        raise click.ClickException(sentence(error)) from error


@command.command("compact", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path())
@click.option("--retain", metavar="HOURS", type=click.IntRange(168), help="Also delete files replaced longer ago; from 168 on.")
def compact_tables(file: str, retain: int | None) -> None:
    """Make few large files of many small ones in Delta and plain Parquet tables; may run beside the pipeline."""
    model = _load(file)
    from tidelog.pipeline.failures import PipelineFailure, sentence

    try:
        from tidelog.pipeline.compacting import compact
        from tidelog.pipeline.session import session_for

        for found in compact(model, lambda: session_for(model), retain):
            deleted = "" if found.expired is None else f"; {found.expired:,} replaced ones deleted"
            what = f"{found.removed:,} files became {found.added:,}" if found.removed else "no small files to join"
            print(f"{found.sink}: {what}{deleted}")
    except (ConfigError, PipelineFailure) as error:
        raise click.ClickException(str(error)) from None
    except Exception as error:
        raise click.ClickException(sentence(error)) from error


@command.command("lineage", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path())
def lineage(file: str) -> None:
    """Print where rows come from and go to, as OpenLineage job events, one a line. Needs no Spark and no broker."""
    import json

    from tidelog.pipeline.lineage import events

    model = _load(file)
    try:
        for event in events(model, datetime.now(UTC)):
            print(json.dumps(event))
    except ConfigError as error:
        raise click.ClickException(str(error)) from None


@command.command("status", context_settings=_HELP)
@click.argument("file", default=FILE, type=click.Path())
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="json: for programs.")
def status(file: str, output: str) -> None:
    """How far a pipeline is: its last batch, and the lag of each partition. Needs no Spark."""
    model = _load(file)
    from tidelog.cli import columns
    from tidelog.pipeline.status import rows_of

    try:
        rows = rows_of(model)
    except Exception as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        print(columns.as_json(rows))
        return
    names = ("query", "batch", "topic", "partition", "offset", "end", "lag")
    print(columns.table([columns.Column(name.upper(), name, len(name)) for name in names], rows))


def _load(file: str) -> PipelineModel:
    from tidelog.pipeline.yaml_text import load

    # The pipeline's functions are in a module beside its file.
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        return load(file)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
