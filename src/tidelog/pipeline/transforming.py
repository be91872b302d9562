"""Transforms as DataFrames: each is a view for SQL under its name, and an argument for functions. Streams and batches alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import PipelineModel, Transform


def apply(
    frames: dict[str, Any], transforms: Iterable[Transform], model: PipelineModel, judged: Callable[[Any, Transform], Any]
) -> dict[str, Any]:
    """``frames`` with the transforms' added. ``judged`` gets the result of each one with rules, and returns what is passed on."""
    for transform in transforms:
        inputs = [frames[name] for name in transform.inputs]
        if transform.sql:
            for name, frame in zip(transform.inputs, inputs, strict=True):
                frame.createOrReplaceTempView(name)
            result = inputs[0].sparkSession.sql(transform.sql)
        else:
            result = function_of(transform, model)(*inputs)
            if type(result).__name__ != "DataFrame":
                raise ConfigError(
                    f"The function of transform {transform.name} gave {type(result).__name__}, and must give a DataFrame."
                )
        if transform.watermark is not None:
            result = result.withWatermark(*transform.watermark)
        if transform.dedupe:
            result = result.dropDuplicatesWithinWatermark(list(transform.dedupe))
        frames[transform.name] = judged(result, transform) if transform.expectations else result
    return frames


def function_of(transform: Transform, model: PipelineModel) -> Callable[..., Any]:
    """The callable of ``module:name``. ConfigError when it cannot be imported."""
    if transform.function in model.functions:
        found: Callable[..., Any] = model.functions[transform.function]
        return found
    module, _, name = transform.function.partition(":")
    try:
        target: Any = import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"transforms.{transform.name}: the function {transform.function} cannot be imported: {error}."
        ) from None
    if not callable(target):
        raise ConfigError(f"transforms.{transform.name}: {transform.function} is not a function.")
    return target  # type: ignore[no-any-return]
