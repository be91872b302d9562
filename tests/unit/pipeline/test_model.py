"""What a model knows of its parts."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.pipeline.samples import model_of
from tidelog.pipeline.model import Transform


def test_parts_are_found_by_name() -> None:
    model = model_of()
    assert model.source("rides") is model.sources[0] and model.source("silver") is None
    assert model.transform("silver") is model.transforms[0] and model.transform("rides") is None


def test_a_transform_remembers_by_watermark_dedupe_or_because_it_says_so() -> None:
    plain = Transform("t", ("s",), "SELECT 1")
    assert not plain.remembers
    assert dataclasses.replace(plain, stateful=True).remembers
    assert dataclasses.replace(plain, watermark=("at", "1 minute")).remembers


def test_a_model_cannot_be_changed_and_shows_no_password() -> None:
    model = model_of()
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.name = "x"  # type: ignore[misc]
