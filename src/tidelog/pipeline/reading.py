"""From what a user wrote to a ``PipelineModel``: which keys there are, their defaults, and whether the parts fit together.

Both spellings come through here: the YAML file, and the dict that ``decorators`` collects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.model.errors import ConfigError
from tidelog.pipeline.engines import REAL_TIME_TRIGGER_MS, check_bulk, check_real_time
from tidelog.pipeline.model import (
    Decode,
    Engine,
    Evolution,
    Expectation,
    Format,
    Lineage,
    Mode,
    OnError,
    Otherwise,
    PipelineModel,
    Registry,
    SinkSpec,
    Source,
    Transform,
)
from tidelog.pipeline.sections import NAME, Document, Section
from tidelog.pipeline.sinks.kinds import KINDS

ROOT = (
    "pipeline", "engine", "kafka", "registry", "checkpoint", "trigger", "group", "sources", "transforms", "sinks",
    "dead_letters", "quarantine", "spark", "lineage",
)  # fmt: skip
REGISTRY = ("url", "username", "password", "timeout")
LINEAGE = ("url", "file", "console", "api_key", "namespace")
SOURCE = ("topics", "pattern", "start", "max_records", "on_data_loss", "headers", "key", "value", "on_error", "options")
DECODE = ("format", "schema", "schema_file", "subject", "framed", "descriptor", "message")
TRANSFORM = ("from", "sql", "function", "expect", "watermark", "dedupe", "stateful")
EXPECTATION = ("check", "otherwise")
SINK = ("type", "from", "mode", "keys", "order_by", "partition_by", "schema_evolution")
_PIPELINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_FUNCTION = re.compile(r"[\w.]+:[\w.]+")


def read_model(document: Document, functions: dict[str, Any] | None = None) -> PipelineModel:
    """The pipeline. ConfigError names the first mistake, its line and what would be right."""
    root = document.root(ROOT)
    name = root.text("pipeline")
    if not _PIPELINE.fullmatch(name):
        raise root.error("pipeline", f"{name!r} must have letters, digits and _ . - only: tables and groups are called by it.")
    kafka = root.pairs("kafka")
    try:
        parse_settings(dict(kafka))
    except ConfigError as error:
        raise root.error("kafka", str(error)) from None
    engine = root.choice("engine", Engine.SPARK)
    if "checkpoint" in root and not root.text("checkpoint").strip():
        raise root.error("checkpoint", "it is empty: say a folder, or leave it out.")
    model = PipelineModel(
        name=name,
        kafka=kafka,
        sources=tuple(_source(source, section) for source, section in root.named("sources", SOURCE)),
        transforms=tuple(_transform(transform, section) for transform, section in root.named("transforms", TRANSFORM)),
        sinks=tuple(_sink(sink, section) for sink, section in root.named("sinks", _sink_keys(root, "sinks"))),
        registry=_registry(root),
        checkpoint=root.text("checkpoint", f"checkpoints/{name}"),
        trigger_ms=root.duration_ms("trigger", REAL_TIME_TRIGGER_MS if engine is Engine.JVM else 1000),
        group=root.text("group", f"tidelog-pipeline-{name}"),
        dead_letters=_side(root, "dead_letters"),
        quarantine=_side(root, "quarantine"),
        spark=root.pairs("spark"),
        engine=engine,
        lineage=_lineage(root),
        functions=functions or {},
    )
    _fits(model, document)
    if model.engine is Engine.BULK:
        check_bulk(model, document)
    if model.engine is Engine.JVM:
        check_real_time(model, document)
    return model


def _sink_keys(root: Section, key: str) -> tuple[str, ...]:
    """All keys that any kind of sink has: which of them fit is told by ``_sink``, when the kind is known."""
    return (*SINK, *sorted({option for kind in KINDS.values() for option in kind.options}))


def _registry(root: Section) -> Registry | None:
    section = root.section("registry", REGISTRY)
    if section is None:
        return None
    password = section.text("password") if "password" in section else None
    username = section.text("username") if "username" in section else None
    return Registry(section.text("url").rstrip("/"), username, password, section.duration_ms("timeout", 60_000))


def _lineage(root: Section) -> Lineage | None:
    section = root.section("lineage", LINEAGE)
    if section is None:
        return None
    url = section.text("url", "")
    if url and not url.startswith(("http://", "https://")):
        raise section.error("url", f"{url!r} must begin with http:// or https://, like http://marquez:5000/api/v1/lineage.")
    return Lineage(
        url, section.text("file", ""), section.flag("console", False), section.text("api_key", ""), section.text("namespace", "")
    )


def _source(name: str, section: Section) -> Source:
    topics, pattern = section.names("topics"), section.text("pattern", "")
    if bool(topics) == bool(pattern):
        raise section.error("topics", "say either topics (a list) or pattern (for the whole name).")
    loss = section.text("on_data_loss", "fail")
    if loss not in ("fail", "log"):
        raise section.error("on_data_loss", f"{loss!r} must be fail or log.")
    return Source(
        name,
        tuple(sorted(set(topics))),
        pattern,
        _start(section),
        section.number("max_records"),
        loss == "fail",
        section.flag("headers", False),
        _decode(section, "key"),
        _decode(section, "value"),
        section.choice("on_error", OnError.DEAD_LETTERS),
        section.pairs("options"),
    )


def _start(section: Section) -> str:
    value = section.get("start")
    text = value.isoformat() if isinstance(value, datetime) else section.text("start", "earliest")
    if text in ("earliest", "latest"):
        return text
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise section.error("start", f"{text!r} must be earliest, latest or a time like 2026-01-31T00:00:00Z.") from None
    milliseconds = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    return str(milliseconds) if milliseconds >= 0 else "earliest"  # a broker is asked for no time before 1970


def _decode(outer: Section, key: str) -> Decode:
    if isinstance(outer.get(key), str):
        outer_format = outer.choice(key, Format.RAW)
        if outer_format not in (Format.RAW, Format.TEXT):
            raise outer.error(key, f"{outer_format} needs more than its name: {key}: {{format: {outer_format}, schema: ...}}.")
        return Decode(outer_format)
    section = outer.section(key, DECODE)
    if section is None:
        return Decode()
    kind = section.choice("format", Format.RAW)
    schema = section.text("schema", "")
    if "schema_file" in section:
        if schema:
            raise section.error("schema_file", "schema and schema_file are both set: say one of them.")
        schema = _file(section, "schema_file")
    found = Decode(
        kind,
        schema,
        section.text("subject", ""),
        section.flag("framed", bool(section.text("subject", ""))),
        section.text("descriptor", ""),
        section.text("message", ""),
    )
    for option, kinds in (
        ("schema", (Format.JSON, Format.AVRO)),
        ("schema_file", (Format.JSON, Format.AVRO)),
        ("subject", (Format.JSON, Format.AVRO, Format.PROTOBUF)),
        ("framed", (Format.JSON, Format.AVRO, Format.PROTOBUF)),
        ("descriptor", (Format.PROTOBUF,)),
        ("message", (Format.PROTOBUF,)),
    ):
        if option in section and kind not in kinds:
            raise section.error(option, f"it means nothing where format is {kind}; it belongs to {' and '.join(kinds)}.")
    if kind in (Format.JSON, Format.AVRO) and not schema and not found.subject:
        raise section.error("schema", "say schema (or schema_file), or the subject of the registry that has it.")
    if kind is Format.PROTOBUF and (not found.message or not (found.descriptor or found.subject)):
        raise section.error("message", "say message (its full name) and descriptor (a file of protoc), or a registry's subject.")
    return found


def _file(section: Section, key: str) -> str:
    try:
        with open(section.text(key), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise section.error(key, f"{section.text(key)} cannot be read: {error.strerror}.") from None


def _transform(name: str, section: Section) -> Transform:
    sql, function = section.text("sql", ""), section.text("function", "")
    inputs = section.names("from")
    if bool(sql) == bool(function):
        raise section.error("sql", "say either sql or function (module:name).")
    if function and not _FUNCTION.fullmatch(function):
        raise section.error("function", f"{function!r} must be module:name, a function that Python can import.")
    if not inputs:
        raise section.error("from", "say which sources or transforms its rows come from.")
    watermark = None
    if "watermark" in section:
        column, _, delay = section.text("watermark").partition(" ")
        if not NAME.fullmatch(column) or not re.fullmatch(r"\d+ (second|minute|hour|day)s?", delay):
            raise section.error("watermark", f"{section.text('watermark')!r} must look like: event_time 10 minutes.")
        watermark = (column, delay)
    if "dedupe" in section and watermark is None:
        raise section.error("dedupe", "it needs a watermark beside it, else Spark would keep every row for ever.")
    found = tuple(_expectations(section))
    return Transform(name, inputs, sql, function, found, watermark, section.names("dedupe"), section.flag("stateful", False))


def _expectations(section: Section) -> Iterator[Expectation]:
    for name, rule in section.named("expect", EXPECTATION):
        yield Expectation(name, rule.text("check"), rule.choice("otherwise", Otherwise.DROP))


def _sink(name: str, section: Section, *, side: bool = False) -> SinkSpec:
    kind_name = section.text("type")
    kind = KINDS.get(kind_name)
    if kind is None:
        raise section.error("type", f"{kind_name!r} is none of {', '.join(sorted(KINDS))}.")
    if side and not kind.aside:
        able = ", ".join(name for name, other in sorted(KINDS.items()) if other.aside)
        raise section.error("type", f"a sink of type {kind_name} has no place for these rows: say one of {able}.")
    allowed = {option for other in KINDS.values() for option in other.options}
    for option in sorted(allowed - set(kind.options)):
        if option in section:
            raise section.error(
                option, f"a sink of type {kind_name} has no such option; it has {', '.join(kind.options) or 'none'}."
            )
    for option in kind.required:
        if not section.text(option).strip():
            raise section.error(option, f"it is empty, and a sink of type {kind_name} needs it.")
    mode, keys = section.choice("mode", Mode.APPEND), section.names("keys")
    if (mode is Mode.UPSERT) != bool(keys):
        raise section.error("keys", "mode upsert needs keys (columns), and only that mode has them.")
    if mode is Mode.UPSERT and not kind.upserts:
        raise section.error("mode", f"a sink of type {kind_name} can only append.")
    if not side and "from" not in section:
        raise section.error("from", "say which source or transform it takes its rows from.")
    return SinkSpec(
        name,
        kind_name,
        section.text("from", ""),
        mode,
        keys,
        section.text("order_by", ""),
        section.names("partition_by"),
        section.choice("schema_evolution", Evolution.NONE),
        tuple(sorted((option, section.text(option)) for option in kind.options if option in section)),
    )


def _side(root: Section, key: str) -> SinkSpec | None:
    section = root.section(key, (known for known in _sink_keys(root, key) if known not in ("from", "mode", "keys", "order_by")))
    return None if section is None else _sink(key, section, side=True)


def _fits(model: PipelineModel, document: Document) -> None:
    """Whether the parts know each other."""
    for part in ("sources", "sinks"):
        if not getattr(model, part):
            raise document.error((), f"{part} is missing: a pipeline has at least one.")
    seen: dict[str, str] = {}
    kinds = (("sources", model.sources), ("transforms", model.transforms), ("sinks", model.sinks))
    for part, things in kinds[:2]:
        for thing in things:
            if thing.name in seen:
                raise document.error((part, thing.name), f"this name is taken by {seen[thing.name]}: each has one of its own.")
            seen[thing.name] = part
    for transform in model.transforms:
        for name in transform.inputs:
            if name not in seen:
                raise document.error(("transforms", transform.name, "from"), _nobody(name, seen))
    for sink in model.sinks:
        if sink.input not in seen:
            raise document.error(("sinks", sink.name, "from"), _nobody(sink.input, seen))
    _no_circle(model, document)
    _sides(model, document)
    for source in model.sources:
        for key, decode in (("key", source.key), ("value", source.value)):
            if decode.framed and model.registry is None:
                raise document.error(
                    ("sources", source.name, key), "it is framed with ids of a registry: say registry: {url: ...}."
                )


def _nobody(name: str, seen: dict[str, str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(seen), 1, 0.5)
    return f"no source or transform is called {name!r}. " + (
        f"Did you mean {close[0]}?" if close else f"There are {', '.join(seen)}."
    )


def _no_circle(model: PipelineModel, document: Document) -> None:
    known = {source.name for source in model.sources}
    waiting = list(model.transforms)
    while waiting:
        ready = [transform for transform in waiting if known.issuperset(transform.inputs)]
        if not ready:
            names = " and ".join(transform.name for transform in waiting)
            raise document.error(("transforms", waiting[0].name, "from"), f"{names} wait for each other in a circle.")
        known |= {transform.name for transform in ready}
        waiting = [transform for transform in waiting if transform.name not in known]


def _sides(model: PipelineModel, document: Document) -> None:
    """Rows that go aside need a place to go to."""
    decoded = [s for s in model.sources if {s.key.format, s.value.format} - {Format.RAW, Format.TEXT}]
    wanting = [source.name for source in decoded if source.on_error is OnError.DEAD_LETTERS]
    if wanting and model.dead_letters is None:
        raise document.error(
            ("sources", wanting[0]),
            "records that cannot be decoded go to dead_letters, and there is no such sink: add dead_letters: {type: delta, "
            "path: ...} to the pipeline, or on_error: drop or fail to the source.",
        )
    for transform in model.transforms:
        if any(rule.otherwise is Otherwise.QUARANTINE for rule in transform.expectations) and model.quarantine is None:
            raise document.error(
                ("transforms", transform.name, "expect"),
                "rows go to quarantine, and there is no such sink: add quarantine: {type: delta, path: ...} to the pipeline.",
            )
