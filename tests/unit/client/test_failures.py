from __future__ import annotations

from tidelog.client.failures import NoConnection, NoRoute, before_the_first_answer
from tidelog.model.errors import ErrorCode


def test_without_a_reason_of_its_own_a_failure_gives_its_text() -> None:
    assert NoConnection("b:1 is gone").reason == "b:1 is gone"
    assert NoConnection("b:1 is gone", reason="gone").reason == "gone"


def test_a_missing_route_is_a_sentence_without_the_code() -> None:
    error = NoRoute(ErrorCode.BROKER_NOT_AVAILABLE, "The cluster has no broker 7.")
    assert (str(error), error.code) == ("The cluster has no broker 7.", ErrorCode.BROKER_NOT_AVAILABLE)


def test_only_a_listener_with_tls_may_ask_for_a_certificate() -> None:
    assert "ssl.keystore.location" not in before_the_first_answer("", tls=False)
    assert before_the_first_answer("kafka.", tls=True).endswith("(kafka.ssl.keystore.location)")
