"""The record of Kafka's Streams integration tests, and their part of the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.judges import page, read_gaps
from tools.streams_results import StreamsResult, load, read_left_out, save, section

ROW = StreamsResult(
    name="SomeTest",
    passed=7,
    failed=1,
    skipped=1,
    streams_passed=3,
    streams_cases=4,
    seconds=61,
    date="2026-11-28",
    revision="abc",
    failures=["SomeTest.one()[2]"],
    skips=["SomeTest.two()"],
)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "streams.json"
    assert load(file) == {}
    save(file, {"SomeTest": ROW})
    assert load(file) == {"SomeTest": ROW}


def test_kafkas_own_count_stands_beside_ours_and_stays_there() -> None:
    kafka = replace(ROW, passed=9, failed=0, skipped=0, failures=[], skips=[])
    both = kafka.beside(ROW, apache=True)
    assert both == replace(ROW, apache="9/0/0")
    assert replace(ROW, passed=8, failed=0).beside(both, apache=False).apache == "9/0/0"
    with pytest.raises(ValueError, match="tidelog first"):
        kafka.beside(None, apache=True)


def test_the_page_has_a_row_for_each_class_their_sum_and_a_reason_for_each_failure() -> None:
    rows = {"SomeTest": ROW, "ZTest": replace(ROW, name="ZTest", failures=[], skips=[], failed=0, apache="7/0/1")}
    text = page({}, read_gaps("streams SomeTest.one.* it counts sheep\n"), rows)
    assert "| SomeTest | 7 | 1 | 1 | 3 of 4 | 61 | 2026-11-28 | abc | not run |" in text
    assert "| ZTest | 7 | 0 | 1 | 3 of 4 | 61 | 2026-11-28 | abc | 7/0/1 |" in text
    assert "| 2 classes | 14 | 1 | 2 | 6 of 8 | 122 |" in text
    assert "### Kafka Streams\n\n- it counts sheep: `SomeTest.one()[2]`" in text
    assert "### Kafka Streams: skipped\n\n- **not explained yet**: `SomeTest.two()`" in text


def test_classes_that_are_left_out_are_named_with_the_reason_until_they_are_run() -> None:
    left_out = read_left_out("# words\nOtherTest it is slow\nSomeTest it is slow\nThirdTest it wants a tape\n")
    assert section({"SomeTest": ROW}, left_out)[-2:] == ["- it is slow: `OtherTest`", "- it wants a tape: `ThirdTest`"]


def test_a_page_without_these_tests_does_not_name_them() -> None:
    assert section({}, {"OtherTest": "it is slow"}) == []
    assert "Kafka Streams" not in page({}, [])
