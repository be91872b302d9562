"""The words of the style page are found in prose, and a room's budget only goes down."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tools.checks import words
from tools.checks.words import compare, judged, offences, room


def found(text: str) -> list[str]:
    return [match for _, match, _ in offences(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Whoever asks gets an answer.",
        "Somebody has to.",
        "until nobody reads it",
        "elected anew",
        "A client that is told later.",
        "it is told by its checksum",
        "the node has not got any",
        "the two are held against each other",
        "the command goes on with them",
        "settings in a form of his own",
        "The same, of the machine itself.",
        "Who has used more than the quota is muted.",
    ],
)
def test_a_sentence_in_the_old_dialect_is_an_offence(sentence: str) -> None:
    assert len(found(sentence)) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "A client over its quota is muted.",
        "an environment of its own",
        "The same node leads again.",
        "Tell the controller.",
        "who leads",
        "a handler goes on",
    ],
)
def test_plain_english_is_none(sentence: str) -> None:
    assert found(sentence) == []


def test_an_offence_has_its_line() -> None:
    assert [(line, match) for line, match, _ in offences("one\nanew\nthree nobody", 10)] == [(11, "anew"), (12, "nobody")]


def test_only_docstrings_of_tests_are_judged_and_bad_examples_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    test = tmp_path / "tests" / "test_a.py"
    test.write_text('"""Nobody."""\nNAME = "nobody"  # anew\n')
    page = tmp_path / "PAGE.md"
    page.write_text("anew\n<!-- words: off -->\nnobody\n<!-- words: on -->\nwhoever\n")
    places = [(name, line, match) for name, line, match, _ in judged([test, page], tmp_path)]
    assert places == [("tests/test_a.py", 1, "Nobody"), ("PAGE.md", 1, "anew"), ("PAGE.md", 5, "whoever")]


def test_rooms() -> None:
    assert room("src/tidelog/storage/unified_log.py") == "src/tidelog/storage"
    assert room("docs/guide/lake.md") == "docs/guide"
    assert room("README.md") == "README.md"


def test_one_more_offence_than_allowed_fails() -> None:
    assert compare(Counter({"docs": 3}), {"docs": 3}) == []
    (finding,) = compare(Counter({"docs": 3}), {"docs": 2})
    assert finding.startswith("docs has 3")
    assert len(compare(Counter({"new": 1}), {"docs": 2})) == 1


def test_a_budget_never_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "LIST", tmp_path / "words.txt")
    words.LIST.write_text("docs 2\nsrc 2\n")
    monkeypatch.setattr(words, "current", lambda: Counter({"docs": 1, "src": 5, "new": 1}))
    words.write()
    assert words.known() == {"docs": 1, "src": 2}
