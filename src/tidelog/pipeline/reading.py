"""From what a user wrote to a ``PipelineModel``: keys, defaults, and whether the parts fit together.

Both spellings come through here: the YAML file, and the dict that ``decorators`` builds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.model.errors import ConfigError
from tidelog.pipeline.engines import REAL_TIME_TRIGGER_MS, check_bulk, check_real_time
from tidelog.pipeline.fitting import check_parts
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
from tidelog.pipeline.sections import NAME, Document, Section, near
from tidelog.pipeline.sinks.kinds import KINDS, SinkKind

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
    """The pipeline. ConfigError names every mistake, its line and what would be right."""
    root, problems = document.root(ROOT), document.problems
    engine = problems.tried(lambda: root.choice("engine", Engine.SPARK), Engine.SPARK)
    kafka = problems.tried(lambda: _kafka(root), ())
    name = problems.tried(lambda: _name(root), "unnamed")
    model = PipelineModel(
        name=name,
        kafka=kafka,
        sources=tuple(_source(source, section) for source, section in _named(root, "sources", SOURCE)),
        transforms=tuple(_transform(transform, section) for transform, section in _named(root, "transforms", TRANSFORM)),
        sinks=tuple(_sink(sink, section) for sink, section in _named(root, "sinks", _sink_keys(root, "sinks"))),
        registry=problems.tried(lambda: _registry(root), None),
        checkpoint=problems.tried(lambda: _checkpoint(root, name), ""),
        trigger_ms=problems.tried(
            lambda: root.duration_ms("trigger", REAL_TIME_TRIGGER_MS if engine is Engine.JVM else 1000), 1000
        ),
        group=problems.tried(lambda: root.text("group", f"tidelog-pipeline-{name}"), ""),
        dead_letters=problems.tried(lambda: _side(root, "dead_letters"), None),
        quarantine=problems.tried(lambda: _side(root, "quarantine"), None),
        spark=problems.tried(lambda: root.pairs("spark"), ()),
        engine=engine,
        lineage=problems.tried(lambda: _lineage(root), None),
        functions=functions or {},
    )
    check_parts(model, document, root)
    problems.check()
    if model.engine is Engine.BULK:
        check_bulk(model, document)
    if model.engine is Engine.JVM:
        check_real_time(model, document)
    problems.check()
    return model


def _named(root: Section, key: str, known: tuple[str, ...]) -> list[tuple[str, Section]]:
    return root.tried(lambda: root.named(key, known), [])


def _name(root: Section) -> str:
    name = root.text("pipeline")
    if not _PIPELINE.fullmatch(name):
        raise root.error("pipeline", f"{name!r} must have letters, digits and _ . - only: it names tables and groups.")
    return name


def _kafka(root: Section) -> tuple[tuple[str, str], ...]:
    kafka = root.pairs("kafka")
    try:
        parse_settings(dict(kafka))
    except ConfigError as error:
        raise root.error("kafka", str(error)) from None
    return kafka


def _checkpoint(root: Section, name: str) -> str:
    if "checkpoint" in root and not root.text("checkpoint").strip():
        raise root.error("checkpoint", "it is empty: say a folder, or leave it out.")
    return root.text("checkpoint", f"checkpoints/{name}")


def _sink_keys(root: Section, key: str) -> tuple[str, ...]:
    """The keys of all kinds of sinks; ``_sink`` refuses those that do not fit, once the kind is known."""
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
    tried = section.tried
    topics, pattern = tried(lambda: _topics(section), ((), ""))
    return Source(
        name,
        tuple(sorted(set(topics))),
        pattern,
        tried(lambda: _start(section), "earliest"),
        tried(lambda: section.number("max_records"), None),
        tried(lambda: _fails_on_loss(section), True),
        tried(lambda: section.flag("headers", False), False),
        tried(lambda: _decode(section, "key"), Decode()),
        tried(lambda: _decode(section, "value"), Decode()),
        tried(lambda: section.choice("on_error", OnError.DEAD_LETTERS), OnError.DROP),
        tried(lambda: section.pairs("options"), ()),
    )


def _topics(section: Section) -> tuple[tuple[str, ...], str]:
    topics, pattern = section.names("topics"), section.text("pattern", "")
    if bool(topics) == bool(pattern):
        raise section.error("topics", "say either topics (a list) or pattern (for the whole name).")
    return topics, pattern


def _fails_on_loss(section: Section) -> bool:
    loss = section.text("on_data_loss", "fail")
    if loss not in ("fail", "log"):
        raise section.error("on_data_loss", f"{loss!r} must be fail or log.{near(loss, ('fail', 'log'))}")
    return loss == "fail"


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
    return str(milliseconds) if milliseconds >= 0 else "earliest"  # Brokers have no records before 1970.


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
    tried = section.tried
    inputs = tried(lambda: _inputs(section), ())
    sql, function = tried(lambda: _rows_by(section), ("", ""))
    watermark = tried(lambda: _watermark(section), None)
    dedupe = tried(lambda: _dedupe(section), ())
    stateful = tried(lambda: section.flag("stateful", False), False)
    return Transform(name, inputs, sql, function, _expectations(section), watermark, dedupe, stateful)


def _inputs(section: Section) -> tuple[str, ...]:
    inputs = section.names("from")
    if not inputs:
        raise section.error("from", "say which sources or transforms its rows come from.")
    return inputs


def _rows_by(section: Section) -> tuple[str, str]:
    sql, function = section.text("sql", ""), section.text("function", "")
    if bool(sql) == bool(function):
        raise section.error("sql", "say either sql or function (module:name).")
    if function and not _FUNCTION.fullmatch(function):
        raise section.error("function", f"{function!r} must be module:name, a function that Python can import.")
    return sql, function


def _watermark(section: Section) -> tuple[str, str] | None:
    if "watermark" not in section:
        return None
    column, _, delay = section.text("watermark").partition(" ")
    if not NAME.fullmatch(column) or not re.fullmatch(r"\d+ (second|minute|hour|day)s?", delay):
        raise section.error("watermark", f"{section.text('watermark')!r} must look like: event_time 10 minutes.")
    return column, delay


def _dedupe(section: Section) -> tuple[str, ...]:
    if "dedupe" in section and "watermark" not in section:
        raise section.error("dedupe", "it needs a watermark beside it, without one Spark keeps every row.")
    return section.names("dedupe")


def _expectations(section: Section) -> tuple[Expectation, ...]:
    rules = section.tried(lambda: section.named("expect", EXPECTATION), [])
    made = [section.tried(partial(_expectation, name, rule), None) for name, rule in rules]
    return tuple(expectation for expectation in made if expectation is not None)


def _expectation(name: str, rule: Section) -> Expectation:
    return Expectation(name, rule.text("check"), rule.choice("otherwise", Otherwise.DROP))


def _sink(name: str, section: Section, *, side: bool = False) -> SinkSpec:
    tried = section.tried
    kind_name = tried(lambda: section.text("type"), "")
    kind = tried(lambda: _kind(kind_name, section, side=side), None) if kind_name else None
    mode, keys = tried(lambda: _mode(kind_name, kind, section), (Mode.APPEND, ()))
    if not side and "from" not in section:
        tried(lambda: section.text("from"), "")
    return SinkSpec(
        name,
        kind_name,
        tried(lambda: section.text("from", ""), ""),
        mode,
        keys,
        tried(lambda: section.text("order_by", ""), ""),
        tried(lambda: section.names("partition_by"), ()),
        tried(lambda: section.choice("schema_evolution", Evolution.NONE), Evolution.NONE),
        () if kind is None else tried(lambda: _options(kind_name, kind, section), ()),
    )


def _kind(name: str, section: Section, *, side: bool) -> SinkKind:
    kind = KINDS.get(name)
    if kind is None:
        raise section.error("type", f"{name!r} is none of {', '.join(sorted(KINDS))}.{near(name, KINDS)}")
    if side and not kind.aside:
        able = ", ".join(name for name, other in sorted(KINDS.items()) if other.aside)
        raise section.error("type", f"a sink of type {name} has no place for these rows: say one of {able}.")
    return kind


def _options(kind_name: str, kind: SinkKind, section: Section) -> tuple[tuple[str, str], ...]:
    allowed = {option for other in KINDS.values() for option in other.options}
    for option in sorted(allowed - set(kind.options)):
        if option in section:
            raise section.error(
                option, f"a sink of type {kind_name} has no such option; it has {', '.join(kind.options) or 'none'}."
            )
    for option in kind.required:
        if not section.text(option).strip():
            raise section.error(option, f"it is empty, and a sink of type {kind_name} needs it.")
    return tuple(sorted((option, section.text(option)) for option in kind.options if option in section))


def _mode(kind_name: str, kind: SinkKind | None, section: Section) -> tuple[Mode, tuple[str, ...]]:
    mode, keys = section.choice("mode", Mode.APPEND), section.names("keys")
    if (mode is Mode.UPSERT) != bool(keys):
        raise section.error("keys", "mode upsert needs keys (columns), and only that mode has them.")
    if mode is Mode.UPSERT and kind is not None and not kind.upserts:
        raise section.error("mode", f"a sink of type {kind_name} can only append.")
    return mode, keys


def _side(root: Section, key: str) -> SinkSpec | None:
    section = root.section(key, (known for known in _sink_keys(root, key) if known not in ("from", "mode", "keys", "order_by")))
    return None if section is None else _sink(key, section, side=True)
