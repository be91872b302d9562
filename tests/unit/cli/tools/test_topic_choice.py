from __future__ import annotations

import re

import click
import pytest

from tidelog.cli.tools import topic_choice
from tidelog.cli.tools.topic_choice import SHOWN, confirm, meant

NAMES = ["a.b", "a_b", "aXb", "b"]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("a.b", ["a.b"]),
        ("a.b, b", ["a.b", "b"]),
        ("a.b,a[X_]b", ["a.b", "a_b", "aXb"]),
        ("a.*", ["a.b", "a_b", "aXb"]),
        ("a.b|b", NAMES),
        ("x(a.b,c)", []),
        ("a", []),
    ],
)
def test_a_name_is_that_topic_and_the_rest_is_a_regular_expression(text: str, chosen: list[str]) -> None:
    wanted = meant(text, NAMES)
    assert [name for name in NAMES if wanted(name)] == chosen


def test_what_is_no_regular_expression_is_an_error() -> None:
    with pytest.raises(re.error):
        meant("[", NAMES)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions; the answer is no."""
    questions: list[str] = []

    def refuse(question: str, **_: object) -> None:
        questions.append(question)
        raise click.Abort

    monkeypatch.setattr(topic_choice.click, "confirm", refuse)
    monkeypatch.setattr(topic_choice, "at_terminal", lambda: True)
    return questions


@pytest.mark.parametrize(("text", "names"), [("a.b", ["a.b"]), ("a.b,b", ["a.b", "b"])])
def test_what_was_named_is_not_asked_about(asked: list[str], text: str, names: list[str]) -> None:
    confirm("Delete", text, names, yes=False)
    assert asked == []


def test_one_topic_that_was_not_named_is_asked_about(asked: list[str]) -> None:
    with pytest.raises(click.Abort):
        confirm("Delete", "a.c", ["aXc"], yes=False)
    assert asked == ["Delete this topic, which 'a.c' matches?"]


def test_nothing_is_asked_with_yes_or_without_a_terminal(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    confirm("Delete", ".*", NAMES, yes=True)
    monkeypatch.setattr(topic_choice, "at_terminal", lambda: False)
    confirm("Delete", ".*", NAMES, yes=False)
    assert asked == []


@pytest.mark.usefixtures("asked")
def test_only_the_first_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.Abort):
        confirm("Delete", ".*", [f"t{number}" for number in range(SHOWN + 3)], yes=False)
    assert capsys.readouterr().err.endswith("  t19\n  and 3 more\n")
