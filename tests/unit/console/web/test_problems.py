from __future__ import annotations

import pytest

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection, NoRoute, NotAuthenticated
from tidelog.console.web.problems import Problem, error_text, problem_of
from tidelog.model.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Problem(418, "tea"), 418),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no"), 404),
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no"), 403),
        (KafkaError(ErrorCode.NON_EMPTY_GROUP, "no"), 409),
        (KafkaError(ErrorCode.INVALID_CONFIG, "no"), 400),
        (KafkaError(ErrorCode.NOT_CONTROLLER, "no"), 502),
        (NoRoute(ErrorCode.BROKER_NOT_AVAILABLE, "no"), 502),
        (NoConnection("gone"), 503),
        (NoConnection("gone", sent=True), 502),
        (NotAuthenticated("no"), 503),
        (UnsupportedByBroker("old"), 502),
        (TimeoutError(), 504),
        (RuntimeError("secret"), 500),
    ],
)
def test_each_error_has_its_status(error: Exception, status: int) -> None:
    assert problem_of(error).status == status


def test_an_unexpected_error_shows_nothing_of_itself() -> None:
    assert "secret" not in str(problem_of(RuntimeError("secret")).as_json())


def test_kafkas_code_and_the_column_are_in_the_answer() -> None:
    found = problem_of(KafkaError(ErrorCode.INVALID_CONFIG, "retention.ms")).as_json()
    assert found["kafka"] == {"code": 40, "name": "INVALID_CONFIG"}
    assert Problem(400, "x", at=3).as_json()["at"] == 3
    assert error_text(KafkaError(ErrorCode.INVALID_CONFIG, "retention.ms")) == "INVALID_CONFIG: retention.ms"


def test_an_unknown_outcome_is_said() -> None:
    assert "not known" in problem_of(NoConnection("the connection ended", sent=True)).detail
