"""Calls answered by a function instead of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tidelog.client.calls import Ask, Call, Each, VersionOf

T = TypeVar("T")


def answered(call: Call[T], answer: Callable[[Any], Any]) -> T:
    """The result of a call whose steps ``answer`` answers; an exception that it returns is raised inside the call."""
    try:
        step = next(call)
        while True:
            result = [answered(each, answer) for each in step.calls] if isinstance(step, Each) else answer(step)
            step = call.throw(result) if isinstance(result, Exception) else call.send(result)
    except StopIteration as end:
        return end.value


class Table:
    """Answers by the type of the request; what was asked, and of which node, in ``asked``."""

    def __init__(self, *answers: Any, version: int = 99) -> None:
        self.asked: list[Ask] = []
        self._answers = {type(each).__name__.replace("Response", "Request"): each for each in answers}
        self._version = version

    def __call__(self, step: Any) -> Any:
        if isinstance(step, VersionOf):
            return self._version
        assert isinstance(step, Ask), step
        self.asked.append(step)
        return self._answers[type(step.request).__name__]
