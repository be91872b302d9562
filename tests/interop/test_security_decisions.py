"""Decisions beside Apache Kafka's own classes: the authorizer, ACL filters, principal mapping rules, JAAS texts."""

from __future__ import annotations

import random
from dataclasses import astuple
from typing import Any

from tests.interop.java import JavaSide
from tidelog.config.jaas import PLAIN_MODULE, SCRAM_MODULE, parse_jaas
from tidelog.model.acl import AccessControlEntry
from tidelog.model.acl_filter import AclFilter
from tidelog.model.errors import ConfigError
from tidelog.model.ids import Uuid
from tidelog.security.authorizer import Authorizer
from tidelog.security.kerberos_names import KerberosNames, NoUserName
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.principal_mapping import NoRuleMatches, PrincipalMapper

CLUSTERS = 60
QUESTIONS = 150
NAMES = ["a", "ab", "abc", "b", "hardcode", "h", "orders", "orders.eu", "kafka-cluster", "*", "ord"]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "User:root", "Group:ops", "Group:*", "User:a,b=c", "User:ANONYMOUS"]
HOSTS = ["10.0.0.1", "10.0.0.2", "*", "0:0:0:0:0:0:0:1"]
CLIENT_HOSTS = ["10.0.0.1", "10.0.0.2", "192.168.7.7", "0:0:0:0:0:0:0:1"]


def random_acl(rng: random.Random) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=rng.choice([2, 2, 2, 3, 4, 5, 6, 7]),
        resource_name=rng.choice(NAMES),
        pattern_type=rng.choice([3, 3, 4]),
        principal=rng.choice(PRINCIPALS),
        host=rng.choice(HOSTS),
        operation=rng.choice([2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        permission_type=rng.choice([2, 3, 3]),
    )


def as_list(number: int, acl: AccessControlEntry) -> list[Any]:
    return [number, *astuple(acl)]


def identity(number: int) -> Uuid:
    return Uuid(number.to_bytes(16))


def test_the_authorizer_decides_as_apache_kafkas(java: JavaSide) -> None:
    rng = random.Random(15)
    allowed = denied = 0
    for _ in range(CLUSTERS):
        # Equal entries under two ids are a fault in Kafka: the controller never writes them.
        acls = list({random_acl(rng) for _ in range(rng.choice([0, 1, 3, 10, 40]))})
        before = acls[: len(acls) * 2 // 3]
        added = dict(enumerate(acls[len(before) :], 1000))
        removed = [number for number in range(len(before)) if rng.random() < 0.3]
        everyone = rng.random() < 0.3
        questions = [
            {
                "type": rng.choice(["User", "User", "User", "Group"]),
                "name": rng.choice(["alice", "bob", "root", "ops", "a,b=c", "ANONYMOUS"]),
                "host": rng.choice(CLIENT_HOSTS),
                "operation": rng.choice([3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14, 15]),
                "resource": rng.choice([2, 2, 2, 3, 4, 5, 6, 7]),
                "on": rng.choice(NAMES),
            }
            for _ in range(QUESTIONS)
        ]
        filters = [
            [
                rng.choice([1, 2, 3, 4]),
                rng.choice([None, *NAMES]),
                rng.choice([1, 2, 3, 4]),
                rng.choice([None, None, *PRINCIPALS]),
                rng.choice([None, None, *HOSTS]),
                rng.choice([1, 1, 2, 3, 4]),
                rng.choice([1, 1, 2, 3]),
            ]
            for _ in range(20)
        ]
        theirs = java.ask(
            "authorize",
            super="User:root;Group:ops",
            everyone=str(everyone).lower(),
            acls=[as_list(number, acl) for number, acl in enumerate(before)],
            removed=removed,
            added=[as_list(number, acl) for number, acl in added.items()],
            questions=questions,
            any=questions,
            filters=filters,
        )
        ours = Authorizer([KafkaPrincipal("User", "root"), KafkaPrincipal("Group", "ops")], everyone)
        ours.replace_all({identity(number): acl for number, acl in enumerate(before)})
        ours.change({identity(number): acl for number, acl in added.items()}, [identity(number) for number in removed])
        for each, decided, any_decided in zip(questions, theirs["decided"], theirs["any"], strict=True):
            who = KafkaPrincipal(each["type"], each["name"])
            asked = who, each["host"], each["operation"], each["resource"], each["on"]
            assert ours.allows(*asked) == decided, (each, ours.decide(*asked))
            assert ours.allows(*asked) == ours.decide(*asked).allowed
            assert ours.allows_any(who, each["host"], each["operation"], each["resource"]) == any_decided, each
            allowed, denied = allowed + decided, denied + (not decided)
        left = [acl for number, acl in enumerate(before) if number not in removed] + list(added.values())
        for each, found in zip(filters, theirs["filtered"], strict=True):
            matching = [acl for acl in left if AclFilter(*each).matches(acl)]
            assert sorted("|".join(map(str, as_list(0, acl)[1:])) for acl in matching) == sorted(found), each
    assert allowed > 500
    assert denied > 500


DISTINGUISHED = [
    "CN=kafka1,OU=nodes,O=x,C=DE",
    "CN=Alice Example,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown",
    "CN=duke,OU=JavaSoft,O=Sun Microsystems",
    r"CN=a\,b,O=c/d",
    "OU=only",
    "",
]
RULES = [
    "DEFAULT",
    "",
    " DEFAULT ",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),.*$/$1@$2/L , RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,DEFAULT",
    "RULE:^CN=(.*?),O=c\\/d$/$1/",
    "RULE:.*/$9/",
    "RULE:.*/fixed/, DEFAULT",
    "RULE:^CN=(\\w{1,6}),.*/$1/",
    "RULE:CN=(.*?),.*/$1$2/U",
    "RULE:(OU=)(only)/$2$1/",
    "RULE:no-slash",
    "RULE:a/b",
    "RULE:/b/",
    "RULE:.*//",
    "RULE:.*/b/X",
    "DEFAULT;DEFAULT",
    "DEFAULT,DEFAULT",
    "rule:.*/b/",
    "RULE:(/b/",
    "RULE:.*/$1/L,",
]


def test_mapping_rules_name_the_same_users(java: JavaSide) -> None:
    theirs = java.ask("map_names", rules=RULES, names=DISTINGUISHED)["results"]
    for text, expected in zip(RULES, theirs, strict=True):
        try:
            mapper = PrincipalMapper(text)
        except ConfigError:
            refused = [False], [None] * len(DISTINGUISHED)  # At the start, or each connection.
            assert expected in refused, f"{text!r}: refused here, {expected} there"
            continue
        assert expected != [False], f"{text!r}: refused there"
        assert [named(mapper, each) for each in DISTINGUISHED] == expected, text


def named(mapper: PrincipalMapper, name: str) -> str | None:
    try:
        return mapper.name(name)
    except NoRuleMatches:
        return None


PRINCIPALS_OF_KERBEROS = [
    "ann@REALM",
    "Ann@OTHER",
    "kafka/host-1.example.com@REALM",
    "kafka/host@OTHER",
    "a/b/c@REALM",
    "a@b@REALM",
    "@REALM",
    "aaa@REALM",
    "ünì@REALM",
]
RULES_OF_KERBEROS = [
    ["DEFAULT"],
    ["RULE:[1:$1]"],
    ["RULE:[1:$1@$0]"],
    ["RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"],
    ["RULE:[1:$1@$0](.*@OTHER)s/@.*///L", "DEFAULT"],
    ["RULE:[2:$1.$2]", "RULE:[1:$1]U"],
    ["RULE:[2:$1.$2]s/[.]/-/g/U", "DEFAULT"],
    ["RULE:[2:$2](host.*)s/(h)(o)/$2$1/", "DEFAULT"],
    ["RULE:[2:$1/$2]", "DEFAULT"],
    ["RULE:[1:$1](a+)", "RULE:[1:no]"],
    ["RULE:[1:$1]s/a*/-/g"],
    ["RULE:[1:$1]s/a*/-/"],
    ["RULE:[1:$1]s/a/\\$/g"],
    ["RULE:[1:$1]s/a/\\\\/g"],
    ["RULE:[1:$1]s/(a)/$12/g"],
    ["RULE:[1:$1]s/a/$1/g"],
    ["RULE:[1:$1]s/a/$/g"],
    ["RULE:[1:$1]s/a/${x}/"],
    ["RULE:[1:$2]"],
    ["RULE:[1:$]"],
    ["RULE:[1:x$1y$1z]/L"],
    ["RULE:[3:$1]", "DEFAULT"],
    ["RULE:[:$1]", "DEFAULT"],
    ["RULE:[1:$1]()", "DEFAULT"],
    ["RULE:[1:$1]([)"],
    ["RULE:[1:$1]s/a/b"],
    ["RULE:[1:$1]LU"],
    ["RULE:[1:$1]/"],
    ["RULE:[1:$1]s/a/b/L"],
    ["RULE:[1:$1]s/a/b//L"],
    ["RULE:[1:$1]s/a/b/gL"],
    ["default"],
    ["DEFAULT/L"],
    [" DEFAULT"],
    [],
]


def test_kerberos_principals_have_the_same_names(java: JavaSide) -> None:
    theirs = java.ask("kerberos_names", realm="REALM", rules=RULES_OF_KERBEROS, names=PRINCIPALS_OF_KERBEROS)["results"]
    for rules, expected in zip(RULES_OF_KERBEROS, theirs, strict=True):
        try:
            names = KerberosNames(rules, "REALM")
        except ConfigError:
            # At the start, or each login that a rule is for.
            assert expected == [False] or None in expected, f"{rules}: refused here, {expected} there"
            continue
        assert expected != [False], f"{rules}: refused there"
        # An empty name is a user there, and refused here.
        assert [kerberos_user(names, each) for each in PRINCIPALS_OF_KERBEROS] == [each or None for each in expected], rules


def kerberos_user(names: KerberosNames, principal: str) -> str | None:
    try:
        return names.user(principal)
    except NoUserName:
        return None


JAAS = [
    f'{PLAIN_MODULE} required username="a" password="b";',
    f"{PLAIN_MODULE} required;",
    f"{PLAIN_MODULE} REQUIRED user_x='y';",
    f'{PLAIN_MODULE} sufficient user_x="y" user_z=word;',
    f"{PLAIN_MODULE} required user_x=5;",
    f"{PLAIN_MODULE} required user_x=a5;",
    f"{PLAIN_MODULE} required user_x=5a;",
    f"{PLAIN_MODULE} required user_x=-a;",
    f"{PLAIN_MODULE} required user_x=.a;",
    f"{PLAIN_MODULE} required user_x=true;",
    f'{PLAIN_MODULE} required user_x="with \\"quotes\\" and \\\\ and \\n";',
    f'{PLAIN_MODULE} required user_x="a;b=c";',
    f'{PLAIN_MODULE} required /* c */ user_x="a" // end\n user_y="b";',
    f'{PLAIN_MODULE} required user_x="a"',
    f'{PLAIN_MODULE} required user_x="a";;',
    f'{PLAIN_MODULE} required user_x="a"; {SCRAM_MODULE} required;',
    f'{PLAIN_MODULE} user_x="a";',
    f'{PLAIN_MODULE} maybe user_x="a";',
    f'{PLAIN_MODULE} required user_x "a";',
    f"{PLAIN_MODULE} required user_x=;",
    f'{PLAIN_MODULE} required user_x="a" user_x="b";',
    f'{PLAIN_MODULE} required user_x="a\nb";',
    f'{PLAIN_MODULE} required user_x="open;',
    f'{PLAIN_MODULE} required user_x="\\x41\\101";',
    f'{PLAIN_MODULE} required user_é="ü";',
    f'{PLAIN_MODULE} required "user_x"="a";',
    f'{PLAIN_MODULE} required user_x=a$b-c_d.e;',
    f'{PLAIN_MODULE} required user_x=a@b;',
    f'{PLAIN_MODULE} required user_x="";',
    "",
    ";",
    '"quoted.Module" required;',
]  # fmt: skip


def test_jaas_texts_mean_the_same(java: JavaSide) -> None:
    theirs = java.ask("jaas", texts=JAAS)["results"]
    for text, expected in zip(JAAS, theirs, strict=True):
        try:
            entry = parse_jaas(text)
        except ConfigError:
            assert expected is None or expected["module"] == "quoted.Module", f"{text!r}: refused here, {expected} there"
            continue
        assert expected is not None, f"{text!r}: refused there"
        found = {"module": entry.module, "options": dict(entry.options)}
        assert found == {"module": expected["module"], "options": expected["options"]}, text
        assert entry.flag in expected["flag"], text
