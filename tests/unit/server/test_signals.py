from __future__ import annotations

import signal

import pytest

from tidelog.server.signals import ending_signals


@pytest.mark.parametrize(("handler", "heard"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_closed_terminal_ends_a_process_in_order_unless_it_shall_outlive_it(handler: signal.Handlers, heard: bool) -> None:
    before = signal.signal(signal.SIGHUP, handler)
    try:
        assert (signal.SIGHUP in ending_signals()) is heard
    finally:
        signal.signal(signal.SIGHUP, before)
    assert {signal.SIGTERM, signal.SIGINT} <= set(ending_signals())
