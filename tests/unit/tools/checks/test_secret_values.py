"""Comparisons that leak and values that a repr shows are found; what is safe is not."""

from __future__ import annotations

import ast

import pytest

from tools.checks.secret_values import comparisons, shown_fields


@pytest.mark.parametrize(
    "code",
    [
        "stored_key == credential.stored_key",
        "proof != expected",
        "users[name].password == given",
        "given.password.encode() == other",
        "bytes(token) == other",
        "hmac.new(key).digest() == signature",
        "signature[:8] == other[:8]",
        "a < b == client_key",
        "password in passwords",
        "if self._secret == secret: pass",
    ],
)
def test_a_comparison_that_stops_early_is_found(code: str) -> None:
    assert len(list(comparisons(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "hmac.compare_digest(stored_key, credential.stored_key)",
        "password == ''",
        "token == _ACKNOWLEDGED",
        "token is None",
        "len(proof) == len(signature)",
        "token == b'abc'",
        "'password' in values",
        "name == other",
        "token_count == 3 or tokens_left == other",
        "kind in (PASSWORD, TOKEN)",
    ],
)
def test_what_is_no_secret_or_a_constant_passes(code: str) -> None:
    assert list(comparisons(ast.parse(code))) == []


SHOWN = """
@dataclass(frozen=True)
class Login:
    user: str
    password: str
"""


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (SHOWN, ["Login.password"]),
        (SHOWN.replace("str\n", "str | None = None\n"), ["Login.password"]),
        ("class Stored(NamedTuple):\n    salt: bytes\n    stored_key: bytes", ["Stored.stored_key"]),
        (SHOWN.replace("password: str", "password: str = field(repr=False)"), []),
        (SHOWN.replace("password: str", "password: Password"), []),
        (SHOWN + "    def __repr__(self) -> str:\n        return ''", []),
        (SHOWN.replace("@dataclass(frozen=True)", ""), []),
        (SHOWN.replace("password", "password_file"), []),
    ],
)
def test_a_field_that_repr_shows_is_found(code: str, found: list[str]) -> None:
    assert [name for _, name in shown_fields(ast.parse(code))] == found
