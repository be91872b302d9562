"""The page that says which test shows what: each of those tests is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "guide" / "zookeeper.md"


def test_every_test_that_the_page_names_is_there() -> None:
    found = 0
    for part in re.split(r"`(?=tests/)", PAGE.read_text(encoding="utf-8"))[1:]:
        path, _, rest = part.partition("`")
        tests = re.findall(r"`(test_\w+)`", rest.split("|")[0])
        assert tests, f"{path} is named without a test"
        text = (ROOT / path).read_text(encoding="utf-8")
        for name in tests:
            assert f"def {name}(" in text, f"{path} has no {name}"
            found += 1
    assert found > 20
