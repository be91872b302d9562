"""A pipeline written in Python: functions that take and give DataFrames, and decorators that say where they stand.

    rides = Pipeline("rides", kafka={"bootstrap.servers": "localhost:9092"})
    rides.source("events", topics=["rides"], value={"format": "json", "schema": "id string, fare double"}, on_error="drop")

    @rides.sink("silver", type="delta", path="lake/silver")
    @rides.expect("fare_is_positive", "fare > 0")
    @rides.transform(from_="events")
    def clean(events): return events.where("id is not null")

Keys and values are those of the YAML file (``from_`` for ``from``, which Python keeps for itself); ``model`` is the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.sections import Document

F = TypeVar("F", bound=Callable[..., Any])


class Pipeline:
    """Collects sources, transforms, rules and sinks; ``model`` checks them."""

    def __init__(self, name: str, **settings: Any) -> None:
        self._tree: dict[str, Any] = {"pipeline": name, **settings}
        self._functions: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def source(self, name: str, **said: Any) -> None:
        """Add topics to read."""
        self._tree.setdefault("sources", {})[name] = said

    def sql(self, name: str, text: str, *, from_: str | list[str], **said: Any) -> None:
        """Add a transform in SQL."""
        self._tree.setdefault("transforms", {})[name] = {"from": from_, "sql": text, **said}

    def transform(self, *, from_: str | list[str], **said: Any) -> Callable[[F], F]:
        """Add a function as a transform. It gets the DataFrames of ``from_`` in their order; its name stands for it in SQL and
        in sinks."""

        def decorate(function: F) -> F:
            path = f"{function.__module__}:{function.__qualname__}".replace("<locals>.", "")
            self._tree.setdefault("transforms", {})[function.__name__] = {"from": from_, "function": path, **said}
            self._functions[path] = function
            self._names[id(function)] = function.__name__
            return function

        return decorate

    def expect(self, name: str, check: str, *, otherwise: str = "drop") -> Callable[[F], F]:
        """Add a rule for every row of the transform below."""

        def decorate(function: F) -> F:
            at = self._name(function)
            transform = self._tree["transforms"][at]
            # Decorators run from the bottom up; rules read from the top down, as in a file.
            transform["expect"] = {name: {"check": check, "otherwise": otherwise}, **transform.get("expect", {})}
            return function

        return decorate

    def sink(self, name: str, *, from_: str = "", **said: Any) -> Callable[[F], F]:
        """Add a sink: rows of ``from_``, or as a decorator those of the transform below."""
        self._tree.setdefault("sinks", {})[name] = ({"from": from_} if from_ else {}) | said

        def decorate(function: F) -> F:
            self._tree["sinks"][name]["from"] = self._name(function)
            return function

        return decorate

    def model(self) -> PipelineModel:
        """The pipeline, checked. ConfigError names the mistakes."""
        return read_model(Document(self._tree, f"pipeline {self._tree['pipeline']}"), dict(self._functions))

    def _name(self, function: Any) -> str:
        if id(function) not in self._names:
            raise TypeError(
                f"{function!r} is not a transform of this pipeline: put @pipeline.transform(...) right above the function."
            )
        return self._names[id(function)]
