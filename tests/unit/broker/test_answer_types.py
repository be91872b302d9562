from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.unit.broker.node_world import Ready, run
from tidelog.broker.answer_types import CLOSE_CONNECTION, Encoded, Outgoing, Waiting, as_kafka_error, resume, settled
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation, StorageFailure
from tidelog.replication.purgatory import ParkedAppend


class Wait(Waiting):
    """What follows is returned, or raised, or raised later."""

    def __init__(self, then: Any, *, later: bool = False) -> None:
        super().__init__(ParkedAppend(0, -1))
        self._then = then
        self._is_later = later

    def go_on(self) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        return self._later() if self._is_later else self._now()

    async def _later(self) -> Outgoing:
        return self._now()

    def _now(self) -> Outgoing:
        if isinstance(self._then, Exception):
            raise self._then
        return self._then  # type: ignore[no-any-return]

    def refuse(self, error: KafkaError) -> Outgoing:
        return [error.code.name.encode()]


def test_an_encoded_answer_keeps_its_parts() -> None:
    answer = Encoded((b"ab", b"c"), 3)
    assert (list(answer.parts), answer.size) == ([b"ab", b"c"], 3)


@pytest.mark.parametrize("later", [False, True])
def test_an_error_after_a_wait_is_the_answer(later: bool) -> None:
    outgoing = resume(Wait(KafkaError(ErrorCode.REQUEST_TIMED_OUT), later=later))
    assert (run(outgoing) if isinstance(outgoing, Coroutine) else outgoing) == [b"REQUEST_TIMED_OUT"]


def test_what_waits_once_more_is_settled_at_last() -> None:
    waited: list[object] = []

    def wait(parked: object) -> Ready:
        waited.append(parked)
        return Ready()

    last = Wait([b"frame"], later=True)
    assert run(settled(wait, Wait(last))) == [b"frame"]
    assert len(waited) == 2
    assert last.parked.done
    assert run(settled(wait, CLOSE_CONNECTION)) is CLOSE_CONNECTION


def test_an_error_is_answered_with_its_code_and_what_is_unforeseen_with_none_of_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = KafkaError(ErrorCode.INVALID_REQUEST, "why")
    assert as_kafka_error(known) is known
    assert as_kafka_error(StorageFailure("/d", "full")).code is ErrorCode.KAFKA_STORAGE_ERROR
    assert caplog.records == []
    with caplog.at_level(logging.ERROR):
        unforeseen = as_kafka_error(KeyError("secret"))
    assert (unforeseen.code, unforeseen.detail) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert caplog.records[0].exc_info is not None
    with pytest.raises(ProtocolViolation):
        as_kafka_error(ProtocolViolation("bytes"))
