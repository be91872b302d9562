"""The table of several processes, and where it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import processes
from bench.pair.processes import Failed
from bench.processes import Sample, table


def samples(*values: tuple[float, float], others: float = 0.0) -> list[Sample]:
    return [Sample(rate, cost, 0.1, others) for rate, cost in values]


def test_ratios_are_those_of_two_samples_of_one_round() -> None:
    one, two = table("x", {1: samples((100, 2e-6), (200, 4e-6)), 2: samples((200, 2e-6), (400, 4e-6))})
    assert one == "| x | 1 | 150 | 1.00 (1.00 to 1.00) | 3.0 | 1.00 (1.00 to 1.00) | 0.10 | 0 of 2 void |"
    assert two == "| x | 2 | 300 | 2.00 (2.00 to 2.00) | 3.0 | 1.00 (1.00 to 1.00) | 0.10 | 0 of 2 void |"


def test_a_round_that_others_disturbed_counts_for_nothing() -> None:
    disturbed = [*samples((100, 2e-6)), *samples((1, 9e-6), others=0.2)]
    one, two = table("x", {1: samples((100, 2e-6), (100, 2e-6)), 2: disturbed})
    assert "| 2 | 100 | 1.00 (1.00 to 1.00) |" in two and "1 of 2 void" in one
    alone = table("x", {1: samples((100, 2e-6), others=0.2)})
    assert "all void: shown all the same" in alone[0]


def test_the_table_goes_between_its_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(processes, "PAGE", page)
    page.write_text(f"before\n{processes.BEGIN}\nold\n{processes.END}\nafter\n")
    processes.write("| new |")
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith(f"| new |\n\n{processes.END}\nafter\n") and "old" not in text
    page.write_text("no marks")
    with pytest.raises(Failed, match="no marks"):
        processes.write("| new |")
