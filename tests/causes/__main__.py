"""``python -m tests.causes [--write FILE] [NAME...]``: makes each cause on a real node, prints and writes what was named."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.causes.sampling import NOT_SAMPLED
from tests.causes.scenario import Scenario
from tests.causes.scenarios import SCENARIOS
from tests.causes.scene import Scene
from tests.causes.stages import STAGES, Stage
from tests.causes.table import NOT_MADE, page


@dataclass(frozen=True, slots=True)
class Outcome:
    """``wrong`` is None where the right cause was named with its evidence."""

    scenario: Scenario
    wrong: str | None
    evidence: tuple[str, ...] = ()
    burrow: str = NOT_SAMPLED

    def row(self) -> tuple[str, str, str, str, str]:
        what = self.scenario.cause or (f"none ({self.scenario.note} as a note)" if self.scenario.note else "none")
        if self.scenario.beside:
            what += f", then {self.scenario.beside}"
        return (
            what,
            self.scenario.made,
            "yes" if self.wrong is None else f"no: {self.wrong}",
            self.burrow,
            "; ".join(self.evidence),
        )


def run(scenario: Scenario, stage: Stage) -> Outcome:
    scene = Scene(stage.servers, scenario.name, stage.endpoints, stage.cluster, stage.directory)
    scene.guarded = stage.guarded
    try:
        answer = scenario.make(scene)
    except Exception as error:  # the other scenarios go on
        traceback.print_exc()
        return Outcome(scenario, f"it could not be made: {type(error).__name__}")
    finally:
        scene.close()
    shown = answer["primary"] or next((each for each in answer["notes"] if each["cause"] == scenario.note), None)
    return Outcome(scenario, scenario.judge(answer), () if shown is None else tuple(shown["evidence"]), scene.burrow)


def run_all(chosen: list[Scenario]) -> list[Outcome]:
    """On one stage after the other; each scenario has a topic and a group of its own. Outcomes in the order of the scenarios."""
    outcomes = {}
    for name, opened in STAGES.items():
        mine = [each for each in chosen if each.stage == name]
        if not mine:
            continue
        with tempfile.TemporaryDirectory() as directory, opened(Path(directory)) as stage:
            for scenario in mine:
                outcome = run(scenario, stage)
                print(f"{scenario.name}: {' | '.join(outcome.row())}", flush=True)
                outcomes[scenario.name] = outcome
    return [outcomes[each.name] for each in chosen]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.causes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; all without one")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page to write, when all ran")
    options = parser.parse_args()
    unknown = set(options.names) - {each.name for each in SCENARIOS}
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    chosen = [each for each in SCENARIOS if not options.names or each.name in options.names]
    outcomes = run_all(chosen)
    wrong = sum(each.wrong is not None for each in outcomes)
    print(f"{len(outcomes) - wrong} of {len(outcomes)} as they should be, {len(NOT_MADE)} causes not made")
    if options.write is not None and not options.names:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        rows = [each.row() for each in outcomes]
        options.write.write_text(page(rows, f"{datetime.now(UTC):%Y-%m-%d}", commit.stdout.strip()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
