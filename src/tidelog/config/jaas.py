"""``sasl.jaas.config``: Java's grammar for login modules, and which modules mean something here.

A value is one entry::

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="secret"   // whom this node logs in as
        user_alice="alice-secret";           // whom it accepts

Words consist of letters, digits and ``- _ $ .``; other values stand in double or single quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from tidelog.model.errors import ConfigError

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
MODULES = frozenset({PLAIN_MODULE, SCRAM_MODULE, OAUTHBEARER_MODULE, KERBEROS_MODULE})
"""Classes that tidelog has the meaning of. Every other class is refused: Java would load it (CVE-2023-25194, CVE-2025-27819)."""
FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
USER_PREFIX = "user_"
MAX_CHARACTERS = 64 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class JaasEntry:
    """A login module with its options. The options hold passwords and stay out of ``repr``."""

    module: str
    flag: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module!r}, {self.flag!r}, options=[hidden])"

    @property
    def users(self) -> dict[str, str]:
        """PLAIN: the users that are accepted, with their passwords."""
        return {name[len(USER_PREFIX) :]: value for name, value in self.options.items() if name.startswith(USER_PREFIX)}


def parse_jaas(text: str, option: str = "sasl.jaas.config") -> JaasEntry:
    """The entry of a setting. ConfigError, which names ``option`` and never quotes a value, for a text that Java would refuse."""
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(f"{option} has {len(text)} characters, allowed are {MAX_CHARACTERS}")
    try:
        tokens = list(_tokens(text))
    except _Malformed as problem:
        raise ConfigError(f"{option}: {problem}") from None
    position = 0

    def take(what: str) -> _Token:
        nonlocal position
        if position == len(tokens):
            raise ConfigError(f"{option} ends where {what} was expected; the last character must be ';'")
        position += 1
        return tokens[position - 1]

    module = take("the class of a login module")
    if module.kind is not _Kind.WORD:
        raise ConfigError(f"{option} begins with the class of a login module")
    if module.text not in MODULES:
        raise ConfigError(
            f"sasl.jaas.config: the login module {module.text[:100]} is not supported; {', '.join(sorted(MODULES))} are"
        )
    flag = take("a flag")
    if flag.kind is not _Kind.WORD or flag.text.lower() not in FLAGS:
        raise ConfigError(f"{option}: after the login module stands one of {', '.join(sorted(FLAGS))}")
    options: dict[str, str] = {}
    while (name := take("an option or ';'")).kind is not _Kind.END:
        if name.kind is not _Kind.WORD or take("'='").kind is not _Kind.EQUALS:
            raise ConfigError(f'{option}: options have the form name="value"')
        value = take("a value")
        if value.kind is not _Kind.WORD:
            raise ConfigError(f"{option}: the value of {name.text[:50]} must stand in quotes")
        options[name.text] = value.text
    if position != len(tokens):
        raise ConfigError(f"{option} holds one login module; something stands after its ';'")
    return JaasEntry(module.text, flag.text.lower(), options)


class _Malformed(Exception):
    """Not a sequence of tokens; the text quotes nothing."""


class _Kind(Enum):
    WORD = auto()
    EQUALS = auto()
    END = auto()
    OTHER = auto()


class _Token(NamedTuple):
    kind: _Kind
    text: str


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_OCTAL = r"[0-3][0-7]{0,2}|[4-7][0-7]?"
_WORD_EXTRA = "-_$."


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif text.startswith("//", at):
            at = _line_end(text, at)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            at = len(text) if end < 0 else end + 2
        elif char in "\"'":
            value, at = _quoted(text, at)
            yield _Token(_Kind.WORD, value)
        elif char in "=;":
            yield _Token(_Kind.EQUALS if char == "=" else _Kind.END, char)
            at += 1
        elif _in_word(char):
            start = at
            while at < len(text) and _in_word(text[at]):
                at += 1
            word = text[start:at]
            # Java takes what begins like a number for a number, and a number is no value.
            yield _Token(_Kind.OTHER if word[0].isdigit() or word[0] in ".-" else _Kind.WORD, word)
        else:
            yield _Token(_Kind.OTHER, char)
            at += 1


def _in_word(char: str) -> bool:
    return char.isalnum() or char in _WORD_EXTRA


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _quoted(text: str, at: int) -> tuple[str, int]:
    quote, at, value = text[at], at + 1, []
    while at < len(text) and text[at] != quote:
        char = text[at]
        if char in "\r\n":
            raise _Malformed("a quoted value ends on the line where it began")
        if char == "\\" and (octal := re.match(_OCTAL, text[at + 1 : at + 4])):
            char, at = chr(int(octal[0], 8)), at + octal.end()
        elif char == "\\" and at + 1 < len(text):
            at += 1
            char = _ESCAPES.get(text[at], text[at])
        value.append(char)
        at += 1
    if at == len(text):
        raise _Malformed("a quote is not closed")
    return "".join(value), at + 1
