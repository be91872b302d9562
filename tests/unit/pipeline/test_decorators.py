"""The two spellings of a pipeline."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.decorators import Pipeline


def begun() -> Pipeline:
    rides = Pipeline(
        "rides",
        kafka={"bootstrap.servers": "localhost:9092"},
        dead_letters={"type": "delta", "path": "lake/dead"},
        quarantine={"type": "delta", "path": "lake/quarantine"},
    )
    rides.source("rides", topics=["rides"], value={"format": "json", "schema": "id string not null, fare double"})
    return rides


def test_python_and_yaml_give_equal_models() -> None:
    rides = begun()
    expect = {"positive": {"check": "fare >= 0", "otherwise": "quarantine"}}
    rides.sql("silver", "SELECT id, fare FROM rides", from_="rides", expect=expect)
    rides.sink("bronze", type="delta", from_="rides", path="lake/bronze")
    rides.sink("silver", type="delta", from_="silver", path="lake/silver", mode="upsert", keys=["id"], order_by="fare")
    assert rides.model() == model_of()


def test_functions_stand_where_yaml_names_them_and_rules_keep_their_order() -> None:
    rides = begun()

    @rides.sink("silver", type="delta", path="lake/silver")
    @rides.expect("a", "fare >= 0")
    @rides.expect("b", "id <> ''", otherwise="fail")
    @rides.transform(from_="rides")
    def silver(frame: Any) -> Any:
        return frame

    model = rides.model()
    path = f"{__name__}:test_functions_stand_where_yaml_names_them_and_rules_keep_their_order.silver"
    assert model.functions == {path: silver}
    yaml = RIDES.replace("sql: SELECT id, fare FROM rides", f"function: {path}")
    rules = "a: {check: fare >= 0}\n      b: {check: id <> '', otherwise: fail}"
    yaml = yaml.replace("positive: {check: fare >= 0, otherwise: quarantine}", rules)
    yaml = yaml.replace("  bronze: {type: delta, from: rides, path: lake/bronze}\n", "")
    yaml = yaml.replace(", mode: upsert, keys: [id], order_by: fare", "")
    assert model == model_of(yaml)


def test_mistakes_are_told_by_the_path_of_the_key() -> None:
    rides = begun()
    rides.sink("bronze", type="delta", from_="rides", pth="x")
    with pytest.raises(ConfigError, match=r"pipeline rides: sinks\.bronze\.pth: .*Did you mean path"):
        rides.model()
    with pytest.raises(TypeError, match=r"put @pipeline.transform"):
        rides.expect("a", "true")(lambda frame: frame)
