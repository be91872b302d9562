"""What is read from a judge and what is written of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.judges import JUDGES, LAUNCHER, NoVerdict, chosen, expected_settings, page, read_gaps, reason_for, uncommitted, verdict

SAID = """log: somewhere
FAIL  Test.one()[1] | expected <1>
ok   two
FAIL three 2.1s
KNOWN Test.four
FAIL  Test.five | timed out
kafka-cli: 7 passed, 2 failed, 1 skipped
"""


def test_the_tally_and_the_cases_before_it_are_read() -> None:
    result = verdict("kafka-cli", SAID, 9, "abc")
    assert (result.passed, result.failed, result.skipped, result.seconds) == (7, 2, 1, 9)
    assert result.failures == ["Test.five", "Test.one()[1]"]


def test_a_judge_without_a_tally_has_said_nothing() -> None:
    with pytest.raises(NoVerdict, match="no such file"):
        verdict("connect", "bash: no such file", 1, "abc")


def test_the_settings_of_the_judges_are_passed_on_without_their_comments() -> None:
    assert expected_settings("# words\n\nnum.partitions=4\n\nsuper.users=User:a\n") == ["num.partitions=4", "super.users=User:a"]


def test_a_reason_counts_for_whole_names_only() -> None:
    gaps = read_gaps("# words\nkafka-cli Test\\.o.* served later\n.* Test.five.* slow\n")
    assert reason_for(gaps, "kafka-cli", "Test.one()[1]") == "served later"
    assert reason_for(gaps, "connect", "Test.one()[1]") is None
    assert reason_for(gaps, "connect", "Test.five") == "slow"
    assert reason_for(gaps, "connect", "Test.four") is None


def test_the_page_has_each_failure_under_its_reason_and_names_what_has_none() -> None:
    text = page({"kafka-cli": verdict("kafka-cli", SAID, 9, "abc")}, read_gaps("kafka-cli Test.one.* served later\n"))
    assert "| 7 | 2 | 1 | 9 |" in text
    assert "- served later: `Test.one()[1]`" in text
    assert "- **not explained yet**: `Test.five`" in text


def test_skipped_cases_that_the_log_names_have_a_reason_or_none(tmp_path: Path) -> None:
    log = tmp_path / "go.log"
    log.write_text("--- PASS: TestOne (0.1s)\n--- SKIP: TestTwo (0.00s)\n    --- SKIP: TestThree/part (0.00s)\n")
    result = verdict("franz-go", f"log: {log}\nfranz-go: 1 passed, 0 failed, 2 skipped\n", 9, "abc")
    assert result.skips == ["TestThree/part", "TestTwo"]
    text = page({result.key: result}, read_gaps("franz-go TestTwo served later\n"))
    assert "### franz-go: skipped" in text
    assert "- served later: `TestTwo`" in text
    assert "- **not explained yet**: `TestThree/part`" in text
    assert verdict("kafka-cli", SAID, 9, "abc").skips == []


def test_judges_have_names_of_their_own_and_the_launcher_can_be_run() -> None:
    assert len({judge.name for judge in JUDGES}) == len(JUDGES)
    assert LAUNCHER.stat().st_mode & 0o111


def test_what_three_nodes_did_stands_beside_what_one_did() -> None:
    one, three = verdict("kafka-cli", SAID, 9, "abc"), verdict("kafka-cli", SAID.replace("7 passed", "8 passed"), 9, "abc", 3)
    text = page({one.key: one, three.key: three}, [])
    assert text.index("## One node") < text.index("| 7 | 2 | 1 |") < text.index("## 3 nodes") < text.index("| 8 | 2 | 1 |")
    assert text.index("### kafka-cli\n") < text.index("### kafka-cli on 3 nodes\n")


def test_the_number_of_nodes_is_told_from_the_names() -> None:
    assert chosen([]) == (1, set())
    assert chosen(["connect", "--nodes", "3", "kafka-cli"]) == (3, {"connect", "kafka-cli"})
    for wrong in (["--nodes"], ["--nodes", "0"], ["--nodes", "x"]):
        with pytest.raises(ValueError):
            chosen(wrong)


def test_results_name_a_commit_so_a_changed_tree_is_not_judged(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    for name in ("compat/results.json", "docs/compat.md", "code.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    git("add", "-A")
    git("commit", "-m", "All of it")
    assert uncommitted(tmp_path) == []
    (tmp_path / "compat/results.json").write_text("after")
    (tmp_path / "docs/compat.md").write_text("after")
    (tmp_path / "new.txt").write_text("not tracked")
    assert uncommitted(tmp_path) == []
    (tmp_path / "code.py").write_text("after")
    assert uncommitted(tmp_path) == ["code.py"]
