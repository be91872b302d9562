from __future__ import annotations

import pytest

from tests.unit.dead_letters.samples import EXHAUSTED, letter
from tidelog.dead_letters.choice import Choice


@pytest.mark.parametrize(
    ("choice", "taken"),
    [
        (Choice(), True),
        (Choice(groups=frozenset({"other"})), False),
        (Choice(groups=frozenset({"other", "workers"})), True),
        (Choice(topics={"jobs": None}), True),
        (Choice(topics={"jobs": frozenset({0})}), False),
        (Choice(topics={"jobs": frozenset({0, 1})}), True),
        (Choice(reasons=("threshold", "client")), True),
        (Choice(reasons=("threshold",)), False),
        (Choice(headers=(("__dlq.errors.partition", b"1"), ("__dlq.errors.group", None))), True),
        (Choice(headers=(("__dlq.errors.partition", b"2"),)), False),
        (Choice(key=b"k"), True),
        (Choice(key=b"K"), False),
        (Choice(since_ms=1000), True),
        (Choice(since_ms=1001), False),
        (Choice(until_ms=1000), False),
        (Choice(until_ms=1001), True),
        (Choice(groups=frozenset({"workers"}), reasons=("threshold",)), False),
    ],
)
def test_a_letter_is_chosen_when_it_fits_all(choice: Choice, taken: bool) -> None:
    assert choice.takes(letter(at=1000)) is taken


def test_a_reason_fits_in_any_case() -> None:
    assert Choice(reasons=("exceeded",)).takes(letter(why=EXHAUSTED.upper()))
