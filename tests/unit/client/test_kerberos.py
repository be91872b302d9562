"""Where tickets come from, by the settings of a client."""

from __future__ import annotations

import pytest

from tidelog.client.kerberos import BY_CACHE, BY_KEYTAB, JAAS, KEYTAB, PRINCIPAL, SERVICE, TEXTS, Kerberos, kerberos_settings
from tidelog.client.settings import KNOWN
from tidelog.config.jaas import KERBEROS_MODULE, PLAIN_MODULE
from tidelog.model.errors import ConfigError


def entry(options: str) -> dict[str, str]:
    return {SERVICE: "kafka", JAAS: f"{KERBEROS_MODULE} required {options};"}


def test_the_names_are_settings_of_clients() -> None:
    assert {*TEXTS, JAAS} <= set(KNOWN)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({SERVICE: "kafka", JAAS: BY_KEYTAB}, Kerberos("kafka", "ann@REALM", "/etc/ann.keytab")),
        ({SERVICE: "kafka", JAAS: BY_CACHE}, Kerberos("kafka", use_cache=True)),
        ({SERVICE: "kafka", KEYTAB: "/k", PRINCIPAL: "ann@R"}, Kerberos("kafka", "ann@R", "/k")),
        (
            entry('useKeyTab=true storeKey=true doNotPrompt=true debug=true keyTab="FILE:/k" principal="a/b@R" renewTGT=false'),
            Kerberos("kafka", "a/b@R", "/k"),
        ),
        (
            {JAAS: f'{KERBEROS_MODULE} required useTicketCache=true ticketCache="/c" principal="a@R" serviceName="k2";'},
            Kerberos("k2", "a@R", None, True, "/c"),
        ),
        (
            entry('useTicketCache=True useKeyTab=true keyTab="/k" principal="ann@R" serviceName="kafka"'),
            Kerberos("kafka", "ann@R", "/k", True),
        ),
        (entry('useTicketCache=false useKeyTab=true keyTab="/k" principal="ann@R"'), Kerberos("kafka", "ann@R", "/k")),
    ],
)
def test_tickets_come_from_where_the_settings_say(given: dict[str, str], expected: Kerberos) -> None:
    assert kerberos_settings(given) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({SERVICE: "kafka"}, r"needs a Kerberos ticket.*useKeyTab=true.*useTicketCache=true"),
        ({SERVICE: "kafka", PRINCIPAL: "ann@R"}, "needs a Kerberos ticket"),
        ({SERVICE: "kafka", KEYTAB: "/k"}, r"needs sasl\.kerberos\.principal, as in"),
        ({JAAS: BY_CACHE}, r"needs sasl\.kerberos\.service\.name: the first part"),
        ({SERVICE: "kafka", JAAS: BY_KEYTAB, KEYTAB: "/k"}, "both set: say one"),
        ({SERVICE: "kafka", JAAS: f"{PLAIN_MODULE} required;"}, "but GSSAPI needs com.sun"),
        (entry(""), "needs useKeyTab=true or useTicketCache=true; passwords are not asked for"),
        (entry('useKeyTab=true principal="ann@R"'), r"needs keyTab of sasl\.jaas\.config"),
        (entry('useKeyTab=true keyTab="/k"'), r"needs principal of sasl\.jaas\.config"),
        (entry('useTicketCache=true keyTab="/k"'), "keyTab has no effect without useKeyTab=true"),
        (entry('useKeyTab=true keyTab="/k" principal="a@R" ticketCache="/c"'), "ticketCache has no effect without"),
        (entry("useTicketCache=true renewTGT=true"), "renewTGT=true has no meaning here: remove it. `kinit -R`"),
        (entry("useTicketCache=true isInitiator=false"), "isInitiator=false has no meaning"),
        (entry("useTicketCache=true useFirstPass=true"), "the option useFirstPass, which has no meaning here"),
        (entry("useTicketCache=true serviceName=other"), "serviceName in sasl.jaas.config is other. Set one"),
        ({SERVICE: "kafka", JAAS: "x"}, "sasl.jaas.config"),
    ],
)
def test_what_is_missing_or_has_no_meaning_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        kerberos_settings(given)
