"""Rules for rows, applied to a batch: which rows break which rule, how many, and what happens to them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.model import Expectation, Otherwise, Transform

FAILED = "_tidelog_failed"
_PATIENCE_S = 10.0
_POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Judged:
    """``good`` rows pass, ``aside`` rows go to quarantine (None: no rule asks for that); ``broken`` counts rows by rule.

    ``held`` is the cached frame. Call its ``unpersist``: the one of a frame derived from it does nothing.
    """

    good: Any
    aside: Any
    broken: dict[str, int]
    held: Any


class Counting:
    """Rules whose rows are only left out, counted while the good rows are written. ``good``: to be read once, to its end."""

    def __init__(self, good: Any, marked: Any, counts: list[Any], observation: Any) -> None:
        self.good = good
        self._marked = marked
        self._counts = counts
        self._observation = observation

    def broken(self) -> dict[str, int]:
        """How many rows broke each rule. Call it when ``good`` has been read.

        Spark notifies an observation a moment later, and never where its optimizer found out that no row can pass: waiting
        without a limit would be waiting for ever.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while not self._observation._jo.future().isCompleted():
            if time.monotonic() > deadline:
                row = self._marked.agg(*self._counts).first()
                return {name: int(count) for name, count in row.asDict().items()}
            time.sleep(_POLL_S)
        return {rule: int(count) for rule, count in self._observation.get.items()}


def counting(frame: Any, transform: Transform) -> Counting:
    """Leave out rows that break a rule, and count them by rule, without a pass of their own over the rows."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = Observation()
    marked = frame.withColumn(FAILED, _failed(transform.expectations))
    counts = [F.count_if(F.array_contains(FAILED, rule.name)).alias(rule.name) for rule in transform.expectations]
    good = marked.observe(observation, *counts).where(F.size(FAILED) == 0).drop(FAILED)
    return Counting(good, marked, counts, observation)


def judge(frame: Any, transform: Transform) -> Judged:
    """Check every row against the rules. PipelineFailure when a row breaks a rule whose action is fail."""
    marked = frame.withColumn(FAILED, _failed(transform.expectations)).persist()
    try:
        return _judged(marked, transform)
    except BaseException:
        marked.unpersist()
        raise


def _judged(marked: Any, transform: Transform) -> Judged:
    from pyspark.sql import functions as F

    rules = transform.expectations
    counts = marked.agg(*(F.count_if(F.array_contains(FAILED, rule.name)).alias(rule.name) for rule in rules)).first()
    broken = {rule.name: int(counts[rule.name]) for rule in rules}
    for rule in rules:
        if rule.otherwise is Otherwise.FAIL and broken[rule.name]:
            example = marked.where(F.array_contains(FAILED, rule.name)).drop(FAILED)
            row = example.select(F.to_json(F.struct("*"))).first()[0]
            raise PipelineFailure(
                f"{broken[rule.name]} rows of {transform.name} break the rule {rule.name} ({rule.check}), which says fail; one "
                f"is {row[:500]}. Nothing of this batch was written. Correct the rule or the transform, or say otherwise: "
                "quarantine for it."
            )
    aside = None
    if any(rule.otherwise is Otherwise.QUARANTINE for rule in rules):
        names = F.array(*(F.lit(rule.name) for rule in rules if rule.otherwise is Otherwise.QUARANTINE))
        bad = marked.where(F.arrays_overlap(FAILED, names))
        if any(broken[rule.name] for rule in rules if rule.otherwise is Otherwise.QUARANTINE):
            aside = quarantined(bad, transform.name)
    return Judged(marked.where(F.size(FAILED) == 0).drop(FAILED), aside, broken, marked)


def quarantined(bad: Any, name: str) -> Any:
    """Rows as the quarantine table keeps them: rows of all transforms in one table, therefore as JSON."""
    from pyspark.sql import functions as F

    values = [f"`{column}`" for column in bad.columns if column != FAILED]  # A name may contain a dot.
    return bad.select(
        F.lit(name).alias("transform"),
        *(
            (F.col(f"_{column}") if f"_{column}" in bad.columns else F.lit(None)).cast(kind).alias(column)
            for column, kind in (("topic", "string"), ("partition", "int"), ("offset", "bigint"))
        ),
        F.col(FAILED).alias("rules"),
        F.to_json(F.struct(*values)).alias("row"),
        F.current_timestamp().alias("at"),
    )


def kept(frame: Any, transform: Transform) -> Any:
    """The rows of a stream that break no rule. Counting and quarantine need a batch and happen elsewhere."""
    from pyspark.sql import functions as F

    for rule in transform.expectations:
        frame = frame.where(F.coalesce(F.expr(rule.check), F.lit(False)))
    return frame


def _failed(rules: tuple[Expectation, ...]) -> Any:
    from pyspark.sql import functions as F

    marks = (F.when(~F.coalesce(F.expr(rule.check), F.lit(False)), F.lit(rule.name)) for rule in rules)
    return F.array_compact(F.array(*marks))
