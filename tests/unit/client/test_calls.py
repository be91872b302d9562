"""Calls compose, and what fails is raised where it was asked."""

from __future__ import annotations

from typing import Any

from tests.unit.client.scripted import answered
from tidelog.client.calls import Ask, Call, Each, Node, VersionOf
from tidelog.client.failures import NoConnection
from tidelog.protocol.messages.metadata import MetadataRequest


def versions() -> Call[list[int]]:
    found: list[int] = yield Each([one(1), one(2)])
    return found


def one(node_id: int) -> Call[int]:
    version: int = yield VersionOf(3, Node(node_id))
    return version


def patient() -> Call[str]:
    try:
        yield Ask(MetadataRequest())
    except NoConnection as error:
        return str(error)
    return "answered"


def test_calls_inside_a_call_give_their_results_in_order() -> None:
    def answer(step: Any) -> int:
        return 10 * step.to.node_id

    assert answered(versions(), answer) == [10, 20]


def test_a_failure_is_raised_inside_the_call() -> None:
    assert answered(patient(), lambda step: NoConnection("gone")) == "gone"
