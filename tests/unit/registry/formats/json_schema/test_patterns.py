"""Names that match patterns of properties."""

from __future__ import annotations

from tidelog.registry.formats.json_schema import patterns
from tidelog.registry.formats.json_schema.patterns import MAX_PATTERN, PER_STEP, cost, matches


def test_what_cannot_be_known_is_neither_true_nor_false() -> None:
    assert matches("^a", "ab") is True
    assert matches("^a", "ba") is False
    assert matches("(?=a)", "a") is None
    assert matches(r"(\p{L}{1,64}){1,9}", "a") is None  # more memory than a pattern may have


def test_a_long_pattern_is_not_compiled_and_not_kept() -> None:
    patterns._kept.cache_clear()
    assert matches("a" * MAX_PATTERN, "a" * MAX_PATTERN) is True
    assert matches("a" * (MAX_PATTERN + 1), "a" * (MAX_PATTERN + 1)) is None
    assert cost("a" * (MAX_PATTERN + 1), "a" * 100_000) == 1
    assert patterns._kept.cache_info().currsize == 1


def test_a_match_costs_steps_for_instructions_and_characters() -> None:
    assert cost("^a", "ab") == 1
    assert cost("(?=a)", "a" * 100_000) == 1
    assert cost("(a|b){900}", "a" * PER_STEP) > 900
