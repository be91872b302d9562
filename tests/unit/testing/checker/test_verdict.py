"""What a check tells."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tests.unit.testing.checker.told import Told
from tidelog.testing.checker import Anomaly, Verdict, check, save
from tidelog.testing.checker.__main__ import main
from tidelog.testing.checker.verdict import EXAMPLES


def test_all_are_counted_and_some_are_told() -> None:
    verdict = Verdict()
    assert verdict.valid
    for number in range(EXAMPLES + 5):
        verdict.add(Anomaly.LOST_WRITE, f"number {number} is lost")
    assert not verdict.valid
    assert f"lost write: {EXAMPLES + 5}" in verdict.text()
    assert "number 0 is lost" in verdict.text()
    assert f"number {EXAMPLES} is lost" not in verdict.text()


def test_the_command_says_what_is_wrong_and_exits_with_1(tmp_path: Path) -> None:
    save(Told().send("p", "a", 0).poll("r", (0, "a"), (1, "a")).events, tmp_path / "bad")
    save(Told().send("p", "a", 0).poll("r", (0, "a")).events, tmp_path / "good")
    (tmp_path / "none").write_text("{}\n")
    assert not check(tmp_path / "bad").valid
    bad = CliRunner().invoke(main, [str(tmp_path / "bad"), "--output", "json"])
    told = json.loads(bad.stdout)
    assert (bad.exit_code, told["valid"], told["anomalies"]["DUPLICATE_WRITE"]["count"]) == (1, False, 1)
    assert told["counts"]["sends"] == 1
    good = CliRunner().invoke(main, [str(tmp_path / "good")])
    assert good.exit_code == 0
    assert "Nothing wrong was found." in good.output
    assert CliRunner().invoke(main, [str(tmp_path / "none")]).exit_code == 2
