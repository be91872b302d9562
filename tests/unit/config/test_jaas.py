"""JAAS texts. ``tests/interop/test_security_decisions.py`` compares the grammar with Java's."""

from __future__ import annotations

import pytest

from tidelog.config.jaas import PLAIN_MODULE, JaasEntry, parse_jaas
from tidelog.model.errors import ConfigError


def test_an_entry_with_users() -> None:
    entry = parse_jaas(f'{PLAIN_MODULE} required\n  username="admin" password="secret" // me\n  user_alice=\'x y\';')
    assert entry == JaasEntry(PLAIN_MODULE, "required", {"username": "admin", "password": "secret", "user_alice": "x y"})
    assert entry.users == {"alice": "x y"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the class of a login module"),
        ("com.sun.security.auth.module.JndiLoginModule required;", "JndiLoginModule is not supported"),
        (f"{PLAIN_MODULE} always;", "after the login module stands one of"),
        (f'{PLAIN_MODULE} required user_a="canary"', "the last character must be ';'"),
        (f"{PLAIN_MODULE} required user_a=12345;", "the value of user_a must stand in quotes"),
        (f'{PLAIN_MODULE} required user_a="canary', "a quote is not closed"),
        (f'{PLAIN_MODULE} required user_a="canary"; more', "something stands after its ';'"),
        (f'{PLAIN_MODULE} required user_a "canary";', "options have the form"),
        (f"{PLAIN_MODULE} required {'x' * 70_000};", "allowed are 65536"),
    ],
)
def test_what_is_refused_quotes_no_secret(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config") as refused:
        parse_jaas(text)
    assert problem in str(refused.value)
    assert "canary" not in str(refused.value)
    assert "12345" not in str(refused.value)


def test_the_options_stay_out_of_the_text_of_an_entry() -> None:
    assert "canary" not in repr(parse_jaas(f'{PLAIN_MODULE} required user_a="canary";'))
