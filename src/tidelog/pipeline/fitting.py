"""Whether the parts of a pipeline fit together: the names that they use, the order of transforms, destinations for rejected
rows."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.pipeline.model import Format, OnError, Otherwise, PipelineModel
from tidelog.pipeline.sections import Document, Section


def check_parts(model: PipelineModel, document: Document, root: Section) -> None:
    """Add to the document what does not fit: unknown names, cycles, rows without a destination."""
    add = document.problems.add
    for part in ("sources", "sinks"):
        if part not in root:
            add(document.error((), f"{part} is missing: a pipeline has at least one.", part))
    # Parts that could not be read still have names.
    seen = dict.fromkeys(_names(root, "sources"), "sources")
    for name in _names(root, "transforms"):
        if name in seen:
            add(document.error(("transforms", name), f"this name is used by {seen[name]}: choose another."))
        seen.setdefault(name, "transforms")
    users: list[tuple[tuple[str, ...], str]] = [
        (("transforms", transform.name, "from"), name) for transform in model.transforms for name in transform.inputs
    ]
    users += [(("sinks", sink.name, "from"), sink.input) for sink in model.sinks if sink.input]
    for path, name in users:
        if name not in seen:
            add(document.error(path, _nobody(name, seen)))
    document.problems.tried(lambda: _no_circle(model, document, seen), None)
    document.problems.tried(lambda: _letters_go_somewhere(model, document, root), None)
    document.problems.tried(lambda: _quarantine_is_somewhere(model, document, root), None)
    for source in model.sources:
        for key, decode in (("key", source.key), ("value", source.value)):
            if decode.framed and "registry" not in root:
                add(
                    document.error(
                        ("sources", source.name, key), "it is framed with ids of a registry: say registry: {url: ...}."
                    )
                )


def _names(root: Section, key: str) -> list[str]:
    found = root.get(key)
    return [str(name) for name in found] if isinstance(found, dict) else []


def _nobody(name: str, seen: dict[str, str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(seen), 1, 0.5)
    return f"no source or transform is called {name!r}. " + (
        f"Did you mean {close[0]}?" if close else f"There are {', '.join(seen)}."
    )


def _no_circle(model: PipelineModel, document: Document, seen: Iterable[str]) -> None:
    named = {transform.name for transform in model.transforms}
    known = {name for transform in model.transforms for name in transform.inputs if name not in named}.union(seen) - named
    waiting = list(model.transforms)
    while waiting:
        ready = [transform for transform in waiting if known.issuperset(transform.inputs)]
        if not ready:
            names = " and ".join(transform.name for transform in waiting)
            raise document.error(("transforms", waiting[0].name, "from"), f"{names} depend on each other in a cycle.")
        known |= {transform.name for transform in ready}
        waiting = [transform for transform in waiting if transform.name not in known]


def _letters_go_somewhere(model: PipelineModel, document: Document, root: Section) -> None:
    decoded = [s for s in model.sources if {s.key.format, s.value.format} - {Format.RAW, Format.TEXT}]
    wanting = [source.name for source in decoded if source.on_error is OnError.DEAD_LETTERS]
    if wanting and "dead_letters" not in root:
        raise document.error(
            ("sources", wanting[0]),
            "records that cannot be decoded go to dead_letters, and there is no such sink: add dead_letters: {type: delta, "
            "path: ...} to the pipeline, or on_error: drop or fail to the source.",
        )


def _quarantine_is_somewhere(model: PipelineModel, document: Document, root: Section) -> None:
    for transform in model.transforms:
        if any(rule.otherwise is Otherwise.QUARANTINE for rule in transform.expectations) and "quarantine" not in root:
            raise document.error(
                ("transforms", transform.name, "expect"),
                "rows go to quarantine, and there is no such sink: add quarantine: {type: delta, path: ...} to the pipeline.",
            )
