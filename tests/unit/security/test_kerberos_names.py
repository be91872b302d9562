"""Names by rules. ``tests/interop/test_security_decisions.py`` compares them with Apache Kafka's."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ConfigError
from tidelog.security.kerberos_names import OPTION, KerberosNames, NoUserName


def user(principal: str, *rules: str, realm: str | None = "REALM") -> str:
    return KerberosNames(rules or ["DEFAULT"], realm).user(principal)


@pytest.mark.parametrize(
    ("rules", "principal", "expected"),
    [
        (["DEFAULT"], "ann@REALM", "ann"),
        (["DEFAULT"], "kafka/broker-1.example.com@REALM", "kafka"),
        (["RULE:[1:$1]"], "ann@ELSEWHERE", "ann"),
        (["RULE:[1:$1]", "DEFAULT"], "kafka/host@REALM", "kafka"),
        (["RULE:[2:$1.$2]"], "kafka/host@REALM", "kafka.host"),
        (["RULE:[2:$1@$0](kafka@REALM)s/.*/broker/"], "kafka/host@REALM", "broker"),
        (["RULE:[1:$1@$0](.*@ELSEWHERE)s/@.*//", "DEFAULT"], "Ann@ELSEWHERE", "Ann"),
        (["RULE:[1:$1@$0](.*@ELSEWHERE)s/@.*///L", "DEFAULT"], "Ann@ELSEWHERE", "ann"),
        (["RULE:[1:$1]/U"], "ann@REALM", "ANN"),
        (["RULE:[1:$1]L"], "ANN@REALM", "ann"),
        (["RULE:[1:$1]s/a/b/"], "anna@REALM", "bnna"),
        (["RULE:[1:$1]s/a/b/g"], "anna@REALM", "bnnb"),
        (["RULE:[1:$1]s/a/b/g/U"], "anna@REALM", "BNNB"),
        (["RULE:[1:$1]s/(.)(.*)/$2$1/"], "anna@REALM", "nnaa"),
        (["RULE:[1:$1]s/n/\\$/g"], "anna@REALM", "a$$a"),
        (["RULE:[1:fixed]"], "ann@REALM", "fixed"),
        (["RULE:[1:$1]()", "RULE:[1:other]"], "ann@REALM", "other"),
    ],
)
def test_the_first_rule_that_applies_decides(rules: list[str], principal: str, expected: str) -> None:
    assert user(principal, *rules) == expected


@pytest.mark.parametrize(
    ("rules", "principal", "problem"),
    [
        (["DEFAULT"], "ann@ELSEWHERE", f"no rule of {OPTION} applies to 'ann@ELSEWHERE'"),
        (["RULE:[2:$1]"], "ann@REALM", "no rule of"),
        (["RULE:[1:$1](bob)"], "ann@REALM", "no rule of"),
        (["RULE:[1:$1@$0]"], "ann@REALM", "makes 'ann@REALM' of a principal"),
        (["RULE:[2:$1]s/k/\\//"], "kafka/host@REALM", OPTION),
        (["RULE:[1:$1]s/.*//"], "ann@REALM", "makes an empty name"),
        (["RULE:[1:$1]"], "ann", "is not a principal of the form"),
        (["RULE:[1:$1]"], "a/b/c@REALM", "is not a principal of the form"),
        (["RULE:[1:$1]"], "ann@REALM@REALM", "is not a principal of the form"),
        (["RULE:[1:$1]", "RULE:[2:$1]"], "kafka\\/host@REALM", "is not a principal of the form"),
        (["RULE:[1:$1]", "RULE:[2:$1]"], "root\\@REALM@ELSEWHERE", "is not a principal of the form"),
        (["RULE:[2:$1]"], "WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS", "is not a principal of the form"),
    ],
)
def test_a_principal_without_a_name_is_refused(rules: list[str], principal: str, problem: str) -> None:
    with pytest.raises((NoUserName, ConfigError)) as refused:
        user(principal, *rules)
    assert problem in str(refused.value)


def test_without_a_realm_of_its_own_a_node_knows_nobody_by_default() -> None:
    with pytest.raises(NoUserName, match="own realm is None"):
        user("ann@None", "DEFAULT", realm=None)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("default", "a rule is DEFAULT, or RULE:"),
        ("RULE:$1", "a rule is DEFAULT, or RULE:"),
        ("RULE:[:$1]", "a rule is DEFAULT, or RULE:"),
        ("RULE:[1:$1]s/a/b", "a rule is DEFAULT, or RULE:"),
        ("RULE:[1:$1]LU", "a rule is DEFAULT, or RULE:"),
        ("RULE:[1:$1] ", "a rule is DEFAULT, or RULE:"),
        ("RULE:[1:$]", "after each $ stands a number from 0 to 1"),
        ("RULE:[1:$2]", "after each $ stands a number from 0 to 1"),
        ("RULE:[1:$99999999999]", "after each $ stands a number from 0 to 1"),
        ("RULE:[1:$1]([)", "is not a regular expression"),
        ("RULE:[1:$1](\\p{Alpha}*)", "means something else in Java"),
        ("RULE:[1:$1]s/+/b/", "is not a regular expression"),
        ("RULE:[1:$1]s/a/$1/", "refers to group 1, and the pattern has 0"),
        ("RULE:[1:$1]s/a/$/", "in a replacement, $ stands before"),
        ("RULE:[1:$1]s/a/${x}/", "in a replacement, $ stands before"),
        ("RULE:[1:$1]s/a/b\\/", "in a replacement, $ stands before"),
    ],
)
def test_a_rule_that_cannot_be_read_stops_the_start(rule: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        KerberosNames(["DEFAULT", rule], "REALM")
    assert problem in str(refused.value)
    assert OPTION in str(refused.value)
