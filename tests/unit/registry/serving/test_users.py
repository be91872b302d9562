"""The file of users, and proofs."""

from __future__ import annotations

import base64

import pytest

from tidelog.http.passwords import hashed
from tidelog.model.errors import ConfigError
from tidelog.registry.serving.users import Users, parse_users

HASH = hashed("secret", b"0123456789abcdef")
LINE = f"ann: write, {HASH}"
FORMER = f"ann: write, scrypt${b'salt'.hex()}${bytes(32).hex()}"


def header(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


def test_the_right_password_admits_and_is_known_afterwards() -> None:
    users = Users(parse_users(LINE))
    right = header("ann:secret")
    assert users.known(right) is None
    user = users.checked(right)
    assert user is not None
    users.remember(right, user)
    assert users.known(right) is user
    for wrong in ("ann:", "ann:Secret", "eve:secret", ":secret", "ann"):
        assert users.checked(header(wrong)) is None
        assert users.known(header(wrong)) is None


def test_passwords_and_hashes_are_in_no_repr() -> None:
    (user,) = parse_users(LINE).values()
    assert user.password_hash == HASH
    assert HASH not in repr(user)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing",
        "ann",
        "ann: write",
        LINE.replace("write", "admin"),
        LINE.replace("scrypt", "plain"),
        f": {LINE}",
        LINE[:-4],
        FORMER,
        f"{LINE}\n{LINE}",
    ],
)
def test_files_that_are_none_name_the_line_and_not_the_secret(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_users(text)
    assert "secret" not in str(caught.value)
    assert HASH[:60] not in str(caught.value)
    assert "73616c74" not in str(caught.value)
