"""How command lines write a SCRAM credential: ``SCRAM-SHA-256=[name=alice,iterations=8192,password=secret]``.

``kafka-storage format --add-scram`` and ``kafka-configs --add-config`` share the form; only the first one has ``name``. Instead
of a password there may be a ``saltedpassword`` with its ``salt``, both in base64. Values may stand in double quotes; none may
hold a comma.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field

from tidelog.model.errors import ConfigError
from tidelog.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, salted_password

_ENTRY = re.compile(r"\s*(SCRAM-SHA-256|SCRAM-SHA-512)\s*=\s*\[(.*)\]\s*", re.DOTALL)
_KEYS = frozenset({"name", "iterations", "salt", "password", "saltedpassword"})


@dataclass(frozen=True, slots=True)
class ScramArgument:
    """A credential as an administrator gives it."""

    mechanism: ScramMechanism
    salt: bytes
    salted: bytes = field(repr=False)
    iterations: int
    name: str = ""


def parse_scram(text: str, fresh_salt: bytes, option: str, *, named: bool) -> ScramArgument:
    """The credential in an argument of ``option``. ``fresh_salt``: random bytes for one without a salt; ``named``: whether it has
    a name. ConfigError, which never quotes a password, says what is wrong."""
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise ConfigError(f"{option}: write SCRAM-SHA-256=[{'name=alice,' if named else ''}password=...], or SCRAM-SHA-512")
    mechanism = next(each for each in ScramMechanism if each.title == match[1])
    values = _values(match[2], option)
    if named and not values.get("name"):
        raise ConfigError(f"{option}: name is missing, the user of the credential")
    if not named and "name" in values:
        raise ConfigError(f"{option}: the user is the entity (--entity-name); remove name")
    if ("password" in values) == ("saltedpassword" in values):
        raise ConfigError(f"{option}: give either password or saltedpassword")
    if "saltedpassword" in values and "salt" not in values:
        raise ConfigError(f"{option}: saltedpassword needs its salt")
    iterations = _iterations(values.get("iterations", str(MIN_ITERATIONS)), option)
    salt = _decoded(values["salt"], "salt", option) if "salt" in values else fresh_salt
    if "saltedpassword" in values:
        salted = _decoded(values["saltedpassword"], "saltedpassword", option)
    elif not values["password"]:
        raise ConfigError(f"{option}: the password is empty")
    else:
        salted = salted_password(mechanism, values["password"], salt, iterations)
    return ScramArgument(mechanism, salt, salted, iterations, values.get("name", ""))


def _values(text: str, option: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or key not in _KEYS:
            shown = key if equals and key.isalpha() else "something else"
            raise ConfigError(f"{option}: {shown[:30]!r} is none of {', '.join(sorted(_KEYS))}; a value cannot hold a comma")
        if key in values:
            raise ConfigError(f"{option}: {key} is given twice")
        values[key] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    return values


def _iterations(text: str, option: str) -> int:
    if not text.isdecimal() or len(text) > 9 or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise ConfigError(f"{option}: iterations must be a number from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)


def _decoded(text: str, key: str, option: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ConfigError(f"{option}: {key} is not base64") from None
