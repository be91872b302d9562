"""Bytes and times as text."""

from __future__ import annotations

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size_text(count: float) -> str:
    """``3.1 GiB``; bytes without a fraction."""
    unit = 0
    while count >= 1024 and unit < len(UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {UNITS[unit]}"


def time_text(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.5 h``"""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
