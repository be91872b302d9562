"""Bearer tokens and names with passwords: which headers are accepted, and which files."""

from __future__ import annotations

import base64

import pytest

from tidelog.model.errors import ConfigError
from tidelog.security.http_login import HttpLogin, tokens_of, users_of


def basic(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


LOGIN = HttpLogin(["old-token", "new-token"], ["prometheus:s3cret:with colon", "zoë:pässword"])


@pytest.mark.parametrize(
    "header",
    [
        b"Bearer old-token",
        b"bearer new-token",
        b"BEARER   new-token ",
        basic("prometheus:s3cret:with colon"),
        basic("zoë:pässword").replace(b"Basic", b"basic"),
    ],
)
def test_each_accepted_credential_opens_the_page(header: bytes) -> None:
    assert LOGIN.accepts(header)


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearer old-toke",
        b"Bearer old-token2",
        b"Bearer prometheus:s3cret:with colon",
        b"old-token",
        b"Token old-token",
        b"Basic old-token",
        b"Basic !!!!",
        basic("prometheus"),
        basic("prometheus:"),
        basic("prometheus:s3cret"),
        basic("old-token"),
        b"Basic prometheus:s3cret:with colon",
        b"Bearer \xff\xfe",
    ],
)
def test_everything_else_does_not(header: bytes | None) -> None:
    assert not LOGIN.accepts(header)


def test_without_credentials_nothing_is_accepted() -> None:
    assert not HttpLogin().accepts(b"Bearer ")
    assert not HttpLogin().accepts(None)


def test_credentials_stay_out_of_repr() -> None:
    assert "token" not in repr(HttpLogin(["token"]))


def test_files_may_have_blank_lines_and_comments() -> None:
    assert tokens_of("# of Prometheus\n\nabc\n  def  \r\n", "f") == ["abc", "def"]
    assert users_of("# of Prometheus\n\nme:a b \nyou:x:y\n", "f") == ["me:a b ", "you:x:y"]


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (tokens_of, "", "f holds no token"),
        (tokens_of, "#x\n\n", "f holds no token"),
        (tokens_of, "good\nhunter two", "f, line 2: a token has no blanks"),
        (tokens_of, "hüntertwo", "f, line 1"),
        (users_of, "", "f holds no name:password"),
        (users_of, "me:x\nhunter two", "f, line 2: it must be name:password"),
        (users_of, ":hunter two", "f, line 1"),
        (users_of, "hunter two:", "f, line 1"),
    ],
)
def test_a_line_that_is_no_credential_is_named_and_not_shown(read: object, text: str, problem: str) -> None:
    assert callable(read)
    with pytest.raises(ConfigError, match=problem) as refused:
        read(text, "f")
    assert "two" not in str(refused.value)
