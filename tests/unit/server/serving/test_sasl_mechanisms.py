"""What only a SASL listener has; its connections are in ``test_authenticating``."""

from __future__ import annotations

import pytest

from tidelog.server.serving.sasl_mechanisms import FailureLog
from tidelog.server.serving.violations import TOLD_PER_SECOND


def test_failures_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Clock:
        now = 5000

        def real_ms(self) -> int:
            return self.now

    clock = Clock()
    failures = FailureLog("OUTSIDE", clock)  # type: ignore[arg-type]
    for _ in range(100):
        failures("10.0.0.1", "no")
    assert caplog.text.count("a login from 10.0.0.1 failed: no") == TOLD_PER_SECOND
    clock.now += 1000
    failures("10.0.0.1", "no")
    assert f"{100 - TOLD_PER_SECOND} more logins failed" in caplog.text
    assert failures.total == 101
