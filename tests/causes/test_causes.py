"""The fast scenarios of ``make causes``, and whether its judge can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.causes.scenario import Scenario
from tests.causes.scenarios import SCENARIOS
from tests.causes.scene import Scene
from tests.causes.stages import NODE, STAGES, Stage


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with STAGES[NODE](Path(tmp_path_factory.mktemp("causes"))) as opened:
        yield opened


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.fast], ids=lambda each: each.name)
def test_the_cause_is_named(stage: Stage, scenario: Scenario) -> None:
    assert scenario.stage == NODE
    scene = Scene(stage.servers, scenario.name, stage.endpoints, directory=stage.directory)
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
