"""Decisions have numbers and a status."""

from __future__ import annotations

import pytest

from tools.checks.decisions import judge

GOOD = "# 3. Handlers\n\nStatus: accepted, 2026-11-21.\n\nText.\n"


def test_a_page_with_number_and_status_passes() -> None:
    assert list(judge({"0003-handlers.md": GOOD})) == []
    superseded = GOOD.replace("accepted", "superseded by [9](0009-x.md)")
    assert list(judge({"0003-handlers.md": superseded})) == []


@pytest.mark.parametrize(
    ("pages", "finding"),
    [
        ({"0003-a.md": GOOD, "0003-b.md": GOOD}, "0003-b.md has the number of 0003-a.md"),
        ({"0004-a.md": GOOD}, "does not begin with its number, # 4."),
        ({"0003-a.md": "# 3. Handlers\n\nText.\n"}, "is no status"),
        ({"0003-a.md": GOOD.replace("accepted", "in force")}, "is no status"),
    ],
)
def test_a_missing_status_and_a_number_used_twice_are_found(pages: dict[str, str], finding: str) -> None:
    (found,) = judge(pages)
    assert finding in found
