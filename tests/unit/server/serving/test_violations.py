from __future__ import annotations

import logging

import pytest

from tidelog.model.errors import ProtocolViolation
from tidelog.server.serving.violations import TOLD_PER_SECOND, Violations


def test_the_first_of_a_second_are_told_and_the_rest_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    violations = Violations()
    with caplog.at_level(logging.INFO):
        for number in range(TOLD_PER_SECOND + 20):
            violations.tell("10.0.0.1", "c", ProtocolViolation(f"broken {number}"), 5_000)
        assert len(caplog.messages) == TOLD_PER_SECOND and "10.0.0.1" in caplog.text and "broken 0" in caplog.text
        violations.tell("10.0.0.1", None, ProtocolViolation("later"), 6_000)
    assert "closed 20 more connections" in caplog.messages[-2]
    assert violations.total == TOLD_PER_SECOND + 21


@pytest.mark.parametrize("head", [b"GET / HT", b"CONNECT ", b"PRI * HT", b"OPTIONS "])
def test_an_http_client_is_named(head: bytes, caplog: pytest.LogCaptureFixture) -> None:
    error = ProtocolViolation("a frame of 1195725856 bytes")
    with caplog.at_level(logging.INFO):
        Violations().tell("10.0.0.1", None, error, 5_000, head)
        for other in (b"", b"\0\0\0\x05\0\x12\0\0", b"GETX/ HT", b"get / HT"):
            Violations().tell("10.0.0.1", None, error, 5_000, other)
    assert "an HTTP request" in caplog.messages[0] and "1195725856" not in caplog.messages[0]
    assert all("1195725856" in message and "HTTP" not in message for message in caplog.messages[1:])


def test_a_client_id_stays_on_its_line_and_short(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Violations().tell("10.0.0.1", "x\nERROR forged" + "y" * 30_000, ProtocolViolation("broken"), 5_000)
    assert "\n" not in caplog.messages[0] and len(caplog.messages[0]) < 300
