"""Functions of transforms, found and called."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.transforming import apply, function_of

YAML = RIDES.replace("sql: SELECT id, fare FROM rides", "function: HERE")


class DataFrame:
    """As much of one as is looked at."""


def doubled(frame: Any) -> Any:
    return DataFrame()


def wrong(frame: Any) -> Any:
    return 7


def test_a_function_is_imported_by_its_name_and_gets_its_inputs() -> None:
    model = model_of(YAML.replace("HERE", f"{__name__}:doubled"))
    frames = apply({"rides": DataFrame()}, model.transforms, model, lambda frame, transform: (frame, transform.name))
    assert isinstance(frames["silver"][0], DataFrame) and frames["silver"][1] == "silver"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere_at_all:f", "cannot be imported"),
        (f"{__name__}:nope", "cannot be imported"),
        (f"{__name__}:YAML", "is not a function"),
    ],
)
def test_a_function_that_is_not_there_is_told(name: str, says: str) -> None:
    model = model_of(YAML.replace("HERE", name))
    with pytest.raises(ConfigError, match=f"transforms.silver.*{says}"):
        function_of(model.transforms[0], model)


def test_a_function_that_gives_something_else_is_told() -> None:
    model = model_of(YAML.replace("HERE", f"{__name__}:wrong"))
    with pytest.raises(ConfigError, match="gave int, and must give a DataFrame"):
        apply({"rides": DataFrame()}, model.transforms, model, lambda frame, transform: frame)
