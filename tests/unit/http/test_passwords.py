from __future__ import annotations

import pytest

from tidelog.http.passwords import check_form, hashed, is_right, no_password
from tidelog.model.errors import ConfigError

SALT = b"0123456789abcdef"


def test_only_the_password_is_right() -> None:
    stored = hashed("secret", SALT)
    assert is_right("secret", stored)
    assert not is_right("Secret", stored)
    assert not is_right("", no_password(SALT))
    assert "secret" not in stored


@pytest.mark.parametrize(
    "stored",
    [
        "secret",
        "scrypt:16384:8:1:AAAA:AAAA",
        hashed("x", SALT).replace("16384", "1024"),
        hashed("x", SALT).replace("16384", "16383"),
        hashed("x", SALT).replace("16384", "1048576"),
        hashed("x", SALT)[:-4] + "!!!!",
    ],
)
def test_a_text_that_is_no_hash_is_refused(stored: str) -> None:
    with pytest.raises(ConfigError, match=r"ann.*--hash-password"):
        check_form(stored, "users.json, user ann", "tidelog console --hash-password")
