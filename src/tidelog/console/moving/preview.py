"""A plan of moves as rows of a preview: what becomes of brokers, what it costs, and each move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidelog.console.asking.plans import PlanRow
from tidelog.console.moving.balance_plan import Load, Move, applied, loads
from tidelog.console.moving.layout import Layout
from tidelog.console.sizes import size_text, time_text

MOST_ROWS: Final = 1_000
"""Moves of a plan that are named."""


def rows_of(found: Layout, planned: Sequence[Move], throttle: int | None) -> tuple[PlanRow, ...]:
    """All rows. ``throttle``: bytes per second at each broker, None for no limit."""
    return (*_load_rows(found, planned), *_cost_rows(planned, throttle), *_move_rows(planned))


def _load_rows(found: Layout, planned: Sequence[Move]) -> list[PlanRow]:
    """Brokers whose load changes, before and after."""
    held = found.held()
    before, after = loads(held, found.racks), loads(applied(held, planned), found.racks)
    none = Load(0, 0, 0)
    return [
        PlanRow(f"broker {broker}", _load_text(before.get(broker, none)), _load_text(after.get(broker, none)))
        for broker in sorted({*before, *after})
        if before.get(broker, none) != after.get(broker, none)
    ]


def _load_text(load: Load) -> str:
    return f"{load.replicas} replicas, {load.leaders} leaders, {size_text(load.size)}"


def _cost_rows(planned: Sequence[Move], throttle: int | None) -> list[PlanRow]:
    """What is copied, and how long that takes at least."""
    taken: dict[int, int] = {}
    for move in planned:
        for broker in move.coming:
            taken[broker] = taken.get(broker, 0) + move.size
    if not taken:
        return []
    copies = sum(len(move.coming) for move in planned)
    note = "no limit"
    if throttle is not None:
        note = f"{size_text(throttle)}/s at each broker: {time_text(max(taken.values()) / throttle)} at least"
    return [PlanRow(f"{copies} replicas to copy", None, size_text(sum(taken.values())), note)]


def _move_rows(planned: Sequence[Move]) -> list[PlanRow]:
    rows = [
        PlanRow(
            f"{move.partition[0]}-{move.partition[1]}",
            ", ".join(map(str, move.before)),
            ", ".join(map(str, move.after)),
            f"{size_text(move.bytes_moved)} to copy" if move.coming else "no copy",
        )
        for move in planned[:MOST_ROWS]
    ]
    if len(planned) > MOST_ROWS:
        rows.append(PlanRow(f"and {len(planned) - MOST_ROWS} more", None, None))
    return rows
