"""Mapping rules. ``tests/interop/test_security_decisions.py`` compares them with Apache Kafka's."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ConfigError
from tidelog.security.principal_mapping import NoRuleMatches, PrincipalMapper


def test_the_first_rule_that_matches_the_whole_name_decides() -> None:
    mapper = PrincipalMapper(r"RULE:^CN=(.*?),OU=Svc,.*$/$1/L, RULE:CN=(.*?)\,.*/x-$1/U ,DEFAULT")
    assert mapper.name("CN=Orders,OU=Svc,O=x") == "orders"
    assert mapper.name("CN=a,O=y") == "X-A"
    assert mapper.name("OU=other") == "OU=other"


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(NoRuleMatches, match=r"no rule of ssl\.principal\.mapping\.rules matches"):
        PrincipalMapper("RULE:CN=only/x/").name("CN=only,O=more")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("RULE:a/b", "a slash is missing"),
        ("RULE:a", "a slash is missing"),
        ("RULE:(a/b/", "not a regular expression"),
        ("RULE:a/$1/", "the pattern has none"),
        ("DEFAULT DEFAULT", "a comma between rules is missing"),
        ("USER:a/b/", "begins with RULE:"),
        (r"RULE:\p{Lu}/b/", "means something else in Java"),
        ("RULE:(?<name>a)/b/", "means something else in Java"),
    ],
)
def test_rules_that_cannot_be_read_name_the_place(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules") as refused:
        PrincipalMapper(text)
    assert problem in str(refused.value)
