"""Which streaming queries a pipeline needs. Pure.

Everything of one source that needs no state is one query, batch by batch: decoded once, with all its sinks and its dead letters
after the same offsets. A sink behind a transform with state (a window, a dedupe, a join of streams) is a query of its own,
because the state belongs to a stream.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import Format, OnError, Otherwise, PipelineModel, SinkSpec, Source, Transform


@dataclass(frozen=True, slots=True)
class Flow:
    """One query. ``transforms`` are in the order in which they run. ``remembers``: they keep state and run on the stream
    itself."""

    name: str
    sources: tuple[Source, ...]
    transforms: tuple[Transform, ...]
    sinks: tuple[SinkSpec, ...]
    remembers: bool


def flows(model: PipelineModel) -> tuple[Flow, ...]:
    """The queries of a pipeline. ConfigError where a batch would need two sources."""
    plain: dict[str, list[SinkSpec]] = {source.name: [] for source in model.sources}
    result: list[Flow] = []
    for sink in model.sinks:
        sources, transforms = _above(model, sink.input)
        if any(transform.remembers for transform in transforms):
            result.append(Flow(sink.name, sources, transforms, (sink,), True))
        elif len(sources) > 1:
            raise ConfigError(
                f"The sink {sink.name} takes rows of the sources {' and '.join(s.name for s in sources)}: a join of streams "
                "keeps rows. Say stateful: true for the transform that joins them, with a watermark where Spark wants one."
            )
        else:
            plain[sources[0].name].append(sink)
    for source in model.sources:
        sinks = plain[source.name]
        # A source whose sinks are all behind windows still has dead letters: a query of its own writes them.
        if sinks or any(source in flow.sources for flow in result):
            wanted = [transform for sink in sinks for transform in _above(model, sink.input)[1]]
            result.append(Flow(source.name, (source,), _ordered(wanted), tuple(sinks), False))
    found = tuple(flow for flow in result if flow.sinks or _sets_aside(flow.sources[0]))
    _rules_are_kept(found)
    both = {flow.name for flow in found if flow.remembers} & {flow.name for flow in found if not flow.remembers}
    for name in sorted(both):
        raise ConfigError(
            f"The sink {name} takes rows of a window, which is a query that is called by the sink, and the source {name} is a "
            "query of that name too: give one of them another name."
        )
    return found


def _sets_aside(source: Source) -> bool:
    """Whether bad records of a source are kept or reported."""
    can_fail = {source.key.format, source.value.format} != {Format.RAW}
    return can_fail and source.on_error is not OnError.DROP


def _rules_are_kept(found: tuple[Flow, ...]) -> None:
    """Before a window, rows that break a rule can only be dropped; keeping them is up to a query without state."""
    kept = {transform.name for flow in found if not flow.remembers for transform in flow.transforms}
    for flow in found:
        for transform in flow.transforms if flow.remembers else ():
            asked = [rule for rule in transform.expectations if rule.otherwise is not Otherwise.DROP]
            if asked and transform.name not in kept and transform.name != flow.sinks[0].input:
                raise ConfigError(
                    f"The rule {asked[0].name} of transform {transform.name} says {asked[0].otherwise}, and its rows go into "
                    "windows only, where they can just be left out: give the transform a sink of its own, or say otherwise: drop."
                )


def checkpoint_path(model: PipelineModel, flow: Flow) -> str:
    """The checkpoint folder of a flow's query."""
    return f"{model.checkpoint.rstrip('/')}/{'sink' if flow.remembers else 'source'}-{flow.name}"


def _above(model: PipelineModel, name: str) -> tuple[tuple[Source, ...], tuple[Transform, ...]]:
    sources: dict[str, Source] = {}
    transforms: list[Transform] = []

    def visit(wanted: str) -> None:
        source = model.source(wanted)
        if source is not None:
            sources[source.name] = source
            return
        transform = model.transform(wanted)
        if transform is not None and transform not in transforms:
            for upstream in transform.inputs:
                visit(upstream)
            transforms.append(transform)

    visit(name)
    return tuple(sources.values()), tuple(transforms)


def _ordered(transforms: list[Transform]) -> tuple[Transform, ...]:
    seen: list[Transform] = []
    for transform in transforms:
        if transform not in seen:
            seen.append(transform)
    return tuple(seen)
