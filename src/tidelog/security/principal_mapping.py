r"""``ssl.principal.mapping.rules`` (KIP-371): the user name for the distinguished name of a client's certificate.

The text is a list of rules with commas between them; the first rule that matches the whole name decides, and without a match
the connection is refused::

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=(.*?),.*$/$1@example/L, DEFAULT

A rule is ``DEFAULT`` (the name as it is) or ``RULE:pattern/replacement/`` with ``L`` or ``U`` after it for lower and upper case.
``$1`` is the first group, ``\/`` a slash. Patterns are regular expressions that Java and Python read alike; others are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidelog.model.errors import ConfigError

OPTION = "ssl.principal.mapping.rules"
_REFERENCE = re.compile(r"\$(\d)")
JAVA_ONLY = re.compile(r"\\[pPhHvVRXkGQEzZ]|\(\?<(?![=!])|&&|[*+?}]\+")
"""What Java's regular expressions have and Python's read in another way or not at all."""


class NoRuleMatches(Exception):
    """No rule matches the name; the connection is refused."""


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One ``RULE:``; ``case`` is L, U or empty."""

    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        """The user name; None where the pattern does not match the whole name."""
        if self.pattern.fullmatch(name) is None:
            return None

        def replaced(match: re.Match[str]) -> str:
            def group(reference: re.Match[str]) -> str:
                number = int(reference[1])
                return reference[0] if number > self.pattern.groups else match[number] or ""

            return _REFERENCE.sub(group, self.replacement)

        # As in Kafka, every match is replaced: ``.*`` matches a second time at the end of the name.
        found = self.pattern.sub(replaced, name)
        return found.lower() if self.case == "L" else found.upper() if self.case == "U" else found


class PrincipalMapper:
    """The rules of a listener, in order."""

    def __init__(self, text: str) -> None:
        """ConfigError for rules that cannot be read."""
        self._rules = parse_rules(text)

    def name(self, distinguished_name: str) -> str:
        """The user name for a distinguished name in RFC 2253 form. NoRuleMatches."""
        for rule in self._rules:
            found = distinguished_name if rule is None else rule.apply(distinguished_name)
            if found is not None:
                return found
        raise NoRuleMatches(f"no rule of {OPTION} matches {distinguished_name[:200]!r}")


def parse_rules(text: str) -> tuple[MappingRule | None, ...]:
    """The rules in order; None is DEFAULT. ConfigError, with the place, for a text that cannot be read."""
    rules: list[MappingRule | None] = []
    at = _skip(text, 0)
    while at < len(text):
        rule, at = _rule(text, at)
        rules.append(rule)
        at = _skip(text, at)
        if at < len(text):
            if text[at] != ",":
                raise _wrong(text, at, "a comma between rules is missing")
            at = _skip(text, at + 1)
    return tuple(rules)


def _rule(text: str, at: int) -> tuple[MappingRule | None, int]:
    if text.startswith("DEFAULT", at):
        return None, at + len("DEFAULT")
    if not text.startswith("RULE:", at):
        raise _wrong(text, at, "a rule begins with RULE: or is DEFAULT")
    start = at + len("RULE:")
    pattern, after = _until_slash(text, start)
    replacement, after = _until_slash(text, after)
    case = text[after] if text[after : after + 1] in ("L", "U") else ""
    if java := JAVA_ONLY.search(pattern):
        raise _wrong(text, start, f"{java[0]!r} in a pattern means something else in Java than here")
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise _wrong(text, start, f"the pattern is not a regular expression ({problem})") from None
    if not compiled.groups and _REFERENCE.search(replacement):
        raise _wrong(text, start, "the replacement refers to a group, and the pattern has none")
    return MappingRule(compiled, replacement, case), after + len(case)


def _until_slash(text: str, start: int) -> tuple[str, int]:
    """The text up to a slash without a backslash before it, and the position after that slash."""
    end = start
    while end < len(text) and text[end] != "/":
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise _wrong(text, start, "a slash is missing: RULE:pattern/replacement/")
    return text[start:end].replace("\\/", "/"), end + 1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _wrong(text: str, at: int, problem: str) -> ConfigError:
    return ConfigError(f"{OPTION}: {problem}, at {text[at : at + 30]!r}")
