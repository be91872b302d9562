"""The console's built front belongs to its sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tools.checks.front import found, judge, listed

KNOWN = {"front/src/app.tsx": "aa", "src/tidelog/console/static/index.html": "bb"}


def test_files_as_they_were_built_pass() -> None:
    assert list(judge(KNOWN, dict(KNOWN))) == []


@pytest.mark.parametrize(
    ("there", "finding"),
    [
        ({**KNOWN, "front/src/app.tsx": "cc"}, "front/src/app.tsx has changed since"),
        ({**KNOWN, "front/src/new.ts": "cc"}, "front/src/new.ts is not of the last build"),
        ({"front/src/app.tsx": "aa"}, "src/tidelog/console/static/index.html is gone"),
    ],
)
def test_a_changed_a_new_and_a_missing_file_are_found(there: dict[str, str], finding: str) -> None:
    (line,) = judge(KNOWN, there)
    assert line.startswith(finding)
    assert "make front" in line


def test_sources_and_built_files_are_hashed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("front/src/lib/a.ts", "front/build.mjs", "front/node_modules/x.js", "src/tidelog/console/static/assets/app.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    there = found(tmp_path)
    assert sorted(there) == ["front/build.mjs", "front/src/lib/a.ts", "src/tidelog/console/static/assets/app.js"]
    assert there["front/build.mjs"] == hashlib.sha256(b"front/build.mjs").hexdigest()


def test_the_list_is_read_back() -> None:
    assert listed("aa  front/src/a b.ts\nbb  front/build.mjs\n") == {"front/src/a b.ts": "aa", "front/build.mjs": "bb"}
