"""How a batch is known."""

from __future__ import annotations

import pytest

from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange

IDENTITY = BatchIdentity("rides", "silver", 7, (OffsetRange("t", "abc", 0, 5, 9), OffsetRange("t", "abc", 1, 0, 3)))


def test_an_identity_is_the_same_after_its_way_through_a_table() -> None:
    assert BatchIdentity.from_json(IDENTITY.to_json()) == IDENTITY
    assert IDENTITY.application == "tidelog:rides:silver"


@pytest.mark.parametrize("text", [None, "", "maintenance", "{}", '{"tidelog": {}}', '{"tidelog": {"ranges": [[1]]}}', "[1]", "7"])
def test_what_others_wrote_is_not_taken_for_an_identity(text: str | None) -> None:
    assert BatchIdentity.from_json(text) is None
