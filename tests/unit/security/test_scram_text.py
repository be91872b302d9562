"""Credentials as command lines write them."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ConfigError
from tidelog.security.scram import ScramMechanism, salted_password
from tidelog.security.scram_text import ScramArgument, parse_scram

SALT = b"fresh salt"


def test_a_password_is_salted() -> None:
    found = parse_scram("SCRAM-SHA-256=[name=alice,password=secret]", SALT, "--add-scram", named=True)
    salted = salted_password(ScramMechanism.SHA_256, "secret", SALT, 4096)
    assert found == ScramArgument(ScramMechanism.SHA_256, SALT, salted, 4096, "alice")
    assert "secret" not in repr(found)


def test_values_may_be_quoted_and_a_salted_password_is_taken_as_it_is() -> None:
    text = ' SCRAM-SHA-512 = [ name="a b" , salt="c2FsdA==", saltedpassword=c2VjcmV0, iterations=8192 ]'
    found = parse_scram(text, SALT, "--add-scram", named=True)
    assert found == ScramArgument(ScramMechanism.SHA_512, b"salt", b"secret", 8192, "a b")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write SCRAM-SHA-256="),
        ("SCRAM-MD5=[name=a,password=canary]", "write SCRAM-SHA-256="),
        ("SCRAM-SHA-256=[password=canary]", "name is missing"),
        ("SCRAM-SHA-256=[name=a]", "either password or saltedpassword"),
        ("SCRAM-SHA-256=[name=a,password=canary,saltedpassword=canary]", "either password or saltedpassword"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=canary]", "needs its salt"),
        ("SCRAM-SHA-256=[name=a,salt=!,password=canary]", "salt is not base64"),
        ("SCRAM-SHA-256=[name=a,salt=c2FsdA==,saltedpassword=!canary]", "saltedpassword is not base64"),
        ("SCRAM-SHA-256=[name=a,password=x,canary]", "a value cannot hold a comma"),
        ("SCRAM-SHA-256=[name=a,password=canary,password=canary]", "password is given twice"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=16385]", "from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=x]", "from 4096 to 16384"),
    ],
)
def test_what_is_wrong_is_said_without_the_password(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=r"^--add-scram: ") as refused:
        parse_scram(text, SALT, "--add-scram", named=True)
    assert says in str(refused.value)
    assert "canary" not in str(refused.value)
