from __future__ import annotations

from typing import Any

import pytest

from tidelog.config.jaas import KERBEROS_MODULE
from tidelog.config.listener_gssapi import EXAMPLE, RULES, SERVICE
from tidelog.config.listener_sasl import sasl_settings
from tidelog.config.unknown_settings import explain_unknown
from tidelog.model.errors import ConfigError

JAAS = "listener.name.out.gssapi.sasl.jaas.config"
KEYTAB = "useKeyTab=true storeKey=true keyTab='/etc/k.keytab'"
PRINCIPAL = "principal='kafka/node-1@REALM'"


def settings(options: str, **given: str) -> Any:
    texts = {"sasl.enabled.mechanisms": "GSSAPI", JAAS: f"{KERBEROS_MODULE} required {options};"}
    texts.update({name.replace("__", "."): text for name, text in given.items()})
    return sasl_settings(texts, "OUT").mechanisms["GSSAPI"]


def test_a_listener_with_a_keytab() -> None:
    found = settings(f"{KEYTAB} {PRINCIPAL}", connections__max__reauth__ms="5000")
    assert found.gssapi == ("kafka/node-1@REALM", "/etc/k.keytab", ("DEFAULT",))
    assert found.max_reauth_ms == 5000


def test_gssapi_is_what_a_listener_offers_when_nothing_is_set() -> None:
    assert list(sasl_settings({JAAS: EXAMPLE}, "OUT").mechanisms) == ["GSSAPI"]


def test_rules_and_service_may_be_a_listeners_own() -> None:
    own = {
        RULES: "DEFAULT",
        f"listener.name.out.{RULES}": "RULE:[2:$1](a)s/x/y/g/L, DEFAULT",
        f"listener.name.out.{SERVICE}": "kafka",
    }
    found = settings(f"{KEYTAB} {PRINCIPAL} serviceName=kafka", **own)
    assert found.gssapi.rules == ("RULE:[2:$1](a)s/x/y/g/L", "DEFAULT")
    assert [explain_unknown(name) for name in own if name != RULES] == ["", ""]


def test_the_form_of_the_path_that_kerberos_has_itself() -> None:
    text = f"useKeyTab=true storeKey=true keyTab='FILE:/etc/k.keytab' {PRINCIPAL}"
    assert settings(text).gssapi.keytab == "/etc/k.keytab"


@pytest.mark.parametrize(
    ("options", "given", "problem"),
    [
        (f"storeKey=true keyTab='/k' {PRINCIPAL}", {}, "needs useKeyTab=true"),
        (f"useKeyTab=false storeKey=true keyTab='/k' {PRINCIPAL}", {}, "needs useKeyTab=true"),
        (f"useKeyTab=true keyTab='/k' {PRINCIPAL}", {}, "needs storeKey=true"),
        (f"useKeyTab=true storeKey=true {PRINCIPAL}", {}, "needs keyTab, as in"),
        (KEYTAB, {}, "needs principal, as in"),
        (f"{KEYTAB} {PRINCIPAL} useTicketCache=true", {}, "has the option useTicketCache, which has no meaning here"),
        (f"{KEYTAB} {PRINCIPAL} ticketCache='/tmp/x'", {}, "keyTab, principal, serviceName, storeKey, useKeyTab are known"),
        (f"{KEYTAB} {PRINCIPAL} serviceName=kafka", {SERVICE: "tide"}, "Set one of them"),
        (f"{KEYTAB} {PRINCIPAL}", {SERVICE: "tide"}, "clients ask for tickets of the service tide"),
        (f"{KEYTAB} {PRINCIPAL} serviceName=tide", {}, "clients ask for tickets of the service tide"),
    ],
)
def test_what_stops_a_start_says_what_to_change(options: str, given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(options, **given)
    assert problem in str(refused.value)
