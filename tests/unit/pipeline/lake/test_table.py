"""What travels: files and layouts as text."""

from __future__ import annotations

import json

from tidelog.pipeline.lake.table import DataFile, Layout


def test_a_file_comes_back_from_a_manifest() -> None:
    file = DataFile("date=2026-01-01/a.parquet", 3, 99, {"date": "2026-01-01"}, {"offset": (1, 3, 0), "key": (None, None, 2)}, 7)
    assert DataFile.from_json(json.loads(json.dumps(file.to_json()))) == file


def test_a_layout_comes_back_on_an_executor() -> None:
    layout = Layout("/lake", ("topic",), keep=True, target_file_bytes=5)
    assert Layout.from_json(layout.to_json()) == layout
