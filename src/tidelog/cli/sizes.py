"""Parses rates."""

from __future__ import annotations

import re

import click

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?(?:/s)?", re.IGNORECASE)
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def rate(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Option callback: ``50M``, ``1.5 GiB/s``, ``1000000`` or ``none`` to bytes per second, None for no limit."""
    if value is None or value.strip().lower() == "none":
        return None
    found = _RATE.fullmatch(value.strip())
    if found is None or float(found[1]) <= 0:
        raise click.BadParameter(f"{value!r} is no rate: write 50M for 50 MiB/s, a number of bytes per second, or none")
    return int(float(found[1]) * _FACTORS[found[2].upper()])
