"""The page of attacks names a test for each incident of others: each of those tests is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "internals" / "security-attacks.md"
TABLE = "## Incidents of others, each as a test"


def test_every_incident_has_a_test_that_is_there() -> None:
    table = PAGE.read_text(encoding="utf-8").partition(TABLE)[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`(tests/[^`]+)`: ((?:`test_\w+`(?:, )?)+)", row)
        assert named, row
        for path, tests in named:
            text = (ROOT / path).read_text(encoding="utf-8")
            for name in re.findall(r"test_\w+", tests):
                assert f"def {name}(" in text, f"{path} has no {name}"
