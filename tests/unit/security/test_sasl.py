"""A failure has a text for the client and a reason for the log."""

from __future__ import annotations

from tidelog.security.sasl import AuthenticationFailed


def test_the_reason_stays_out_of_the_text() -> None:
    failed = AuthenticationFailed("no", "user 'a': the password is wrong")
    assert (str(failed), failed.args, failed.reason) == ("no", ("no",), "user 'a': the password is wrong")
