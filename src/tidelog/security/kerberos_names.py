r"""``sasl.kerberos.principal.to.local.rules``: the user name for a Kerberos principal.

A principal is ``ann@REALM`` or ``kafka/host@REALM``. Rules stand in a list, and the first one that applies decides; where none
does, the client is refused::

    RULE:[2:$1](kafka)s/.*/broker/, RULE:[1:$1@$0](.*@EU\.EXAMPLE)s/@.*//L, DEFAULT

``DEFAULT`` gives the first part of a principal of the node's own realm. ``RULE:[n:text]`` is for principals of n parts (1 or 2);
in the text ``$0`` is the realm, ``$1`` and ``$2`` are the parts. After it may stand a pattern in parentheses that must match the
whole text, a substitution ``s/pattern/replacement/`` (``g``: of every match), and ``L`` or ``U`` for lower or upper case.
Patterns are those that Java and Python read alike. A comma separates rules, so no rule has one, as in Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidelog.model.errors import ConfigError
from tidelog.security.principal_mapping import JAVA_ONLY

OPTION = "sasl.kerberos.principal.to.local.rules"
ANONYMOUS_REALM = "WELLKNOWN:ANONYMOUS"
"""Of clients that a KDC gave a ticket without knowing them (RFC 8062)."""
_PRINCIPAL = re.compile(r"(?P<first>[^/@]*)(?:/(?P<second>[^/@]*))?@(?P<realm>[^/@]*)")
_RULE = re.compile(
    r"RULE:\[(?P<parts>[0-9]+):(?P<text>[^\]]*)\](?:\((?P<whole>[^)]*)\))?"
    r"(?:s/(?P<old>[^/]*)/(?P<new>[^/]*)/(?P<every>g)?)?/?(?P<case>[LU])?"
)
_PART = re.compile(r"\$([0-9]*)")
_REPLACEMENT = re.compile(r"\\(?P<literal>.)|\$(?P<group>[0-9])|(?P<wrong>[\\$])", re.DOTALL)


class NoUserName(Exception):
    """No user name belongs to the principal; the text says why, for the log."""


@dataclass(frozen=True, slots=True)
class NameRule:
    """One ``RULE:``. ``whole``: what the text must match; ``case`` is L, U or empty."""

    parts: int
    text: str
    whole: re.Pattern[str] | None
    old: re.Pattern[str] | None
    new: str
    every: bool
    case: str

    def apply(self, values: Sequence[str]) -> str | None:
        """The name for (realm, first part[, second part]); None where the rule does not apply. NoUserName."""
        if len(values) - 1 != self.parts:
            return None
        name = _PART.sub(lambda reference: values[int(reference[1])], self.text)
        if self.whole is not None and self.whole.fullmatch(name) is None:
            return None
        if self.old is not None:
            name = self.old.sub(self._replacement, name, count=0 if self.every else 1)
        _check_simple(name)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _replacement(self, match: re.Match[str]) -> str:
        def part(found: re.Match[str]) -> str:
            return found["literal"] or match[int(found["group"])] or ""

        return _REPLACEMENT.sub(part, self.new)


class KerberosNames:
    """The rules of a listener, in order."""

    def __init__(self, rules: Sequence[str], realm: str | None) -> None:
        """``realm``: the node's own, for DEFAULT; None where it has none. ConfigError for rules that cannot be read."""
        self._rules = tuple(parse_rules(rules))
        self._realm = realm

    def user(self, principal: str) -> str:
        """The user name of a principal, as GSSAPI shows it. NoUserName."""
        parsed = _PRINCIPAL.fullmatch(principal)
        # A backslash marks a slash or an at sign inside of a part, which would look like two parts.
        if parsed is None or "\\" in principal or parsed["realm"] == ANONYMOUS_REALM:
            raise NoUserName(f"{principal[:200]!r} is not a principal of the form name@REALM or name/host@REALM")
        values = [parsed["realm"], parsed["first"]]
        if parsed["second"] is not None:
            values.append(parsed["second"])
        for rule in self._rules:
            name = rule.apply(values) if rule is not None else values[1] if values[0] == self._realm else None
            if name is not None:
                if not name:
                    raise NoUserName(f"{OPTION} makes an empty name of {principal[:200]!r}")
                return name
        raise NoUserName(f"no rule of {OPTION} applies to {principal[:200]!r} (the node's own realm is {self._realm})")


def parse_rules(texts: Sequence[str]) -> Iterator[NameRule | None]:
    """The rules in order; None is DEFAULT. ConfigError for a text that cannot be read."""
    for text in texts:
        if text == "DEFAULT":
            yield None
        elif (found := _RULE.fullmatch(text)) is not None:
            yield _rule(text, found)
        else:
            raise _wrong(text, "a rule is DEFAULT, or RULE:[n:text](pattern)s/pattern/replacement/g with L or U at its end")


def _rule(text: str, found: re.Match[str]) -> NameRule:
    parts = int(found["parts"][:9])
    for digits in _PART.findall(found["text"]):
        if not digits or len(digits) > 9 or int(digits) > parts:
            raise _wrong(text, f"after each $ stands a number from 0 to {parts}")
    old = _pattern(text, found["old"])
    for reference in _REPLACEMENT.finditer(found["new"] or ""):
        if reference["wrong"]:
            raise _wrong(text, "in a replacement, $ stands before the number of a group, and a backslash before a character")
        if reference["group"] and old is not None and int(reference["group"]) > old.groups:
            raise _wrong(text, f"the replacement refers to group {reference['group']}, and the pattern has {old.groups}")
    return NameRule(
        parts=parts,
        text=found["text"],
        whole=_pattern(text, found["whole"]),
        old=old,
        new=found["new"] or "",
        every=found["every"] is not None,
        case=found["case"] or "",
    )


def _pattern(text: str, pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    if java := JAVA_ONLY.search(pattern):
        raise _wrong(text, f"{java[0]!r} in a pattern means something else in Java than here")
    try:
        return re.compile(pattern)
    except re.error as problem:
        raise _wrong(text, f"the pattern is not a regular expression ({problem})") from None


def _check_simple(name: str) -> None:
    if "/" in name or "@" in name:
        raise NoUserName(f"{OPTION} makes {name[:200]!r} of a principal, and a user name has no / and no @")


def _wrong(text: str, problem: str) -> ConfigError:
    return ConfigError(f"{OPTION}: {problem}, at {text[:60]!r}")
