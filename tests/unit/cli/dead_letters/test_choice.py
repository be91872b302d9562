from __future__ import annotations

from typing import Any

import pytest

from tests.unit.dead_letters.samples import EXHAUSTED, letter
from tidelog.cli.dead_letters.choice import choice_of
from tidelog.cli.refusal import CommandFailed

NONE: dict[str, Any] = {"group": (), "topic": (), "reason": (), "header": (), "key": None, "since": None, "until": None}
NOW_MS = 10_000_000


@pytest.mark.parametrize(
    ("flags", "taken"),
    [
        ({}, True),
        ({"group": ("other",)}, False),
        ({"group": ("other", "workers")}, True),
        ({"topic": ("jobs",)}, True),
        ({"topic": ("jobs:0",)}, False),
        ({"topic": ("jobs:0", "jobs:1,2")}, True),
        ({"topic": ("jobs:0", "jobs")}, True),
        ({"topic": ("jobs", "jobs:0")}, True),
        ({"topic": ("mails",)}, False),
        ({"reason": ("REJECTED",)}, True),
        ({"reason": ("threshold",)}, False),
        ({"reason": ("threshold", "client")}, True),
        ({"header": ("__dlq.errors.partition=1", "__dlq.errors.group")}, True),
        ({"header": ("__dlq.errors.partition=2",)}, False),
        ({"header": ("trace",)}, False),
        ({"key": "k"}, True),
        ({"key": "K"}, False),
        ({"since": "1970-01-01T00:00:01"}, True),
        ({"since": "1970-01-01T00:00:01.001"}, False),
        ({"until": "1970-01-01T00:00:01"}, False),
        ({"until": "1970-01-01T01:00:01.001+01:00"}, True),
        ({"since": "PT2H46M39S"}, True),
        ({"since": "PT1H"}, False),
        ({"group": ("workers",), "reason": ("threshold",)}, False),
    ],
)
def test_a_letter_is_chosen_when_it_fits_all(flags: dict[str, Any], taken: bool) -> None:
    assert choice_of(NONE | flags, NOW_MS).takes(letter(at=1000)) is taken


def test_of_two_reasons_one_is_enough() -> None:
    choice = choice_of(NONE | {"reason": ("threshold", "rejected")}, NOW_MS)
    assert choice.takes(letter())
    assert choice.takes(letter(why=EXHAUSTED))


@pytest.mark.parametrize("flags", [{"since": "yesterday"}, {"until": "P"}, {"topic": ("jobs:a",)}])
def test_a_text_that_is_none_is_refused(flags: dict[str, Any]) -> None:
    with pytest.raises(CommandFailed, match=r"--(since|until|topic)"):
        choice_of(NONE | flags, NOW_MS)
