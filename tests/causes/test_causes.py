"""The fast scenarios of ``make causes``, and whether its judge can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.causes.scenarios import SCENARIOS, Scenario
from tests.causes.scene import Scene
from tests.unit.cli.running_node import running_node


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_node(Path(tmp_path_factory.mktemp("causes")), **{"group.initial.rebalance.delay.ms": "0"}) as servers:
        yield servers


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.fast], ids=lambda each: each.name)
def test_the_cause_is_named(broker: str, scenario: Scenario) -> None:
    scene = Scene(broker, scenario.name)
    try:
        assert scenario.judge(scenario.make(scene)) is None
    finally:
        scene.close()


def test_the_judge_refuses_other_answers() -> None:
    scenario = next(each for each in SCENARIOS if each.name == "removed")
    finding = {"cause": "P5", "evidence": ["committed 3, the log begins at 9"]}
    assert scenario.judge({"primary": None, "contributing": [], "notes": []}) == "no alarm was named, not P5"
    assert scenario.judge({"primary": {**finding, "cause": "G1"}, "contributing": [], "notes": []}) == "G1 was named, not P5"
    assert "the evidence lacks" in str(scenario.judge({"primary": finding, "contributing": [], "notes": []}))
    manual = next(each for each in SCENARIOS if each.name == "manual")
    assert "not among the notes" in str(manual.judge({"primary": None, "contributing": [], "notes": []}))
    pair = next(each for each in SCENARIOS if each.name == "pair-p2-p5")
    alone = {"primary": {**finding, "cause": "P2"}, "contributing": [], "notes": []}
    assert pair.judge(alone) == "P5 is not among the contributing causes []"
