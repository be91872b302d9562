from __future__ import annotations

import pytest

from tidelog.pipeline.urls import has_user


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://host:8080/path", False),
        ("http://user:secret@host/path", True),
        ("http://user@host", True),
        ("http://host/a@b", False),
        ("host@other", False),
        ("", False),
    ],
)
def test_a_user_stands_before_the_host(url: str, found: bool) -> None:
    assert has_user(url) is found
