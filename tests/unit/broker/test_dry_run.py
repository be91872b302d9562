from __future__ import annotations

from tidelog.broker.dry_run import DryRun


def test_a_warning_counts_since_the_last_one_and_since_the_start() -> None:
    dry_run = DryRun()
    dry_run.denials = 3
    assert "3 operations would have been denied since the last of these lines, 3 since the start" in dry_run.warning()
    dry_run.denials = 5
    assert "2 operations would have been denied since the last of these lines, 5 since the start" in dry_run.warning()
    assert dry_run.warning().startswith("the authorizer is in a dry run (tidelog.authorizer.dry.run=true): every client")
