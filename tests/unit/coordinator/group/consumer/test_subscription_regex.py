"""Subscriptions by pattern: RE2's syntax, whole names, and no pattern that hurts."""

from __future__ import annotations

import sys

import pytest

from tidelog.coordinator.group.consumer.subscription_regex import MAX_LENGTH, InvalidRegex, check, resolve

NAMES = ["orders", "orders.eu", "orders-eu", "old.orders", "clicks", "Clicks"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders.eu", "orders-eu"}),
        (r"orders\.\w+", {"orders.eu"}),
        ("(?i)clicks", {"clicks", "Clicks"}),
        ("clicks|orders", {"clicks", "orders"}),
        ("^clicks$", {"clicks"}),
        ("(old|new)\\.(?P<rest>.+)", {"old.orders"}),
        ("order", set()),
        ("", set()),
        (".*", set(NAMES)),
    ],
)
def test_a_pattern_means_the_names_it_matches_as_a_whole(pattern: str, expected: set[str]) -> None:
    assert resolve(pattern, NAMES) == expected


@pytest.mark.parametrize("pattern", ["foo[", "(foo", "*", "a{2,1}", r"(a)\1", "(?=a)b", "\\"])
def test_what_re2_does_not_know_is_refused_with_the_pattern_and_the_reason(pattern: str) -> None:
    with pytest.raises(InvalidRegex) as caught:
        check(pattern)
    assert caught.value.message.startswith(f"SubscribedTopicRegex `{pattern}` cannot be compiled as RE2: ")
    assert not caught.value.message.endswith(": .")
    with pytest.raises(InvalidRegex):
        resolve(pattern, NAMES)


def test_a_pattern_that_backtracking_would_never_finish_is_answered_at_once() -> None:
    assert resolve("(a+)+(b|a+)*x", ["a" * 249]) == frozenset()


@pytest.mark.parametrize("pattern", ["((a{1,100}){1,100}){1,100}", "(x{1000}){1000}", "[^a]{1000}[^b]{1000}" * 100])
def test_a_pattern_that_asks_for_too_much_memory_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegex):
        check(pattern)


def test_a_pattern_may_be_long_but_not_without_limit() -> None:
    names = [f"topic-{n}" for n in range(1_000)]
    assert resolve("|".join(names), names) == frozenset(names)
    with pytest.raises(InvalidRegex, match="are the limit"):
        check("a" * (MAX_LENGTH + 1))


def test_a_node_without_re2_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(InvalidRegex, match="install google-re2"):
        check("a.*")
