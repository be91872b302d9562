"""Signals that end a process in order."""

from __future__ import annotations

import signal


def ending_signals() -> tuple[int, ...]:
    """Signals that stop the process cleanly: SIGTERM, SIGINT, and SIGHUP (a closed terminal) unless it is ignored, as by
    nohup."""
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return signal.SIGTERM, signal.SIGINT
    return signal.SIGTERM, signal.SIGINT, hangup
