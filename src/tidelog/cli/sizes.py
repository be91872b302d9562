"""Formats and parses bytes, rates and times."""

from __future__ import annotations

import re

import click

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?(?:/s)?", re.IGNORECASE)
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


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


def rate(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Option callback: ``50M``, ``1.5 GiB/s``, ``1000000`` or ``none`` to bytes per second, None for no limit."""
    if value is None or value.strip().lower() == "none":
        return None
    found = _RATE.fullmatch(value.strip())
    if found is None or float(found[1]) <= 0:
        raise click.BadParameter(f"{value!r} is no rate: write 50M for 50 MiB/s, a number of bytes per second, or none")
    return int(float(found[1]) * _FACTORS[found[2].upper()])
