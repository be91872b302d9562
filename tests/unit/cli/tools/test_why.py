"""The lines and exit codes of the command; what it finds on a broker is in tests/node/test_why.py."""

from __future__ import annotations

from click.testing import CliRunner

from tidelog.cli.main import main
from tidelog.cli.tools.why import text
from tidelog.console.verdict import Finding, Verdict

PRIMARY = Finding("P4", "a transaction holds back 1 partition", ("orders-0: committed 3",), "It ends.", "tidelog transactions")
NOTE = Finding("G7", "1 member without a partition", ("app at h",), "Stop it.", alarm=False)


def test_a_cause_comes_first_with_its_proof_and_command() -> None:
    verdict = Verdict("g", "Stable", 7, 5.0, PRIMARY, (PRIMARY,), (NOTE,), ("a is fine", "b too"), ("c",))
    assert list(text(verdict)) == [
        "g: Stable, 7 records behind, watched for 5 s",
        "Cause (P4): a transaction holds back 1 partition",
        "  orders-0: committed 3",
        "  -> It ends.",
        "     tidelog transactions",
        "Also (P4): a transaction holds back 1 partition",
        "  orders-0: committed 3",
        "  -> It ends.",
        "     tidelog transactions",
        "No fault (G7): 1 member without a partition",
        "  app at h",
        "  -> Stop it.",
        "Checked and fine: a is fine; b too",
        "Not visible from here: c",
    ]


def test_nothing_wrong_is_said_plainly() -> None:
    assert list(text(Verdict("g", "", 0, 5.0, None)))[:2] == ["g: 0 records behind, watched for 5 s", "Nothing is wrong."]


def test_a_group_and_a_broker_are_needed() -> None:
    assert CliRunner().invoke(main, ["why"]).exit_code == 2
    result = CliRunner().invoke(main, ["why", "g"], env={"TIDELOG_BOOTSTRAP": ""})
    assert result.exit_code == 2
    assert "--bootstrap-server" in result.stderr
