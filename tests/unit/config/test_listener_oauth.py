from __future__ import annotations

from typing import Any

import pytest

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.jaas import OAUTHBEARER_MODULE
from tidelog.config.listener_oauth import (
    ANY_TOKEN,
    AUDIENCE,
    GROUPS_CLAIM,
    HANDLER,
    ISSUER,
    LOGIN_HANDLER,
    LOGIN_HANDLERS,
    UNSECURED,
    URL,
    VALIDATOR,
)
from tidelog.config.listener_sasl import sasl_settings
from tidelog.config.options import READ_ONLY
from tidelog.model.errors import ConfigError

NAME = "listener.name.out.oauthbearer."
GIVEN = {
    "listener.name.out.sasl.enabled.mechanisms": "OAUTHBEARER",
    NAME + HANDLER: VALIDATOR,
    URL: "https://issuer/keys",
    ISSUER: "https://issuer",
    AUDIENCE: "tidelog, kafka",
}


def settings(**changes: str | None) -> Any:
    given = {**GIVEN, **{name.replace("__", "."): text for name, text in changes.items()}}
    return sasl_settings({name: text for name, text in given.items() if text is not None}, "OUT").mechanisms["OAUTHBEARER"].oauth


def test_a_listener_that_checks_tokens() -> None:
    found = settings()
    assert found.secured
    assert (found.url, found.issuer, found.audiences) == ("https://issuer/keys", "https://issuer", ("tidelog", "kafka"))
    assert (found.skew_ms, found.name_claim, found.scope_claim) == (30_000, "sub", "scope")
    assert (found.refresh_ms, found.retry_ms, found.max_retry_ms) == (3_600_000, 100, 10_000)


@pytest.mark.parametrize("handler", [VALIDATOR, UNSECURED])
def test_the_claim_of_groups_may_be_a_listeners_own(handler: str) -> None:
    assert settings(**{NAME + HANDLER: handler}).groups_claim is None
    assert settings(**{NAME + HANDLER: handler, GROUPS_CLAIM: "groups"}).groups_claim == "groups"
    own = {GROUPS_CLAIM: "groups", NAME + GROUPS_CLAIM: "roles"}
    assert settings(**{NAME + HANDLER: handler, **own}).groups_claim == "roles"


def test_the_name_of_the_handler_before_kafka_4() -> None:
    old = VALIDATOR.replace("OAuthBearerV", "secured.OAuthBearerV")
    assert settings(**{NAME + HANDLER: old}).secured


def test_without_a_handler_nothing_is_accepted() -> None:
    with pytest.raises(ConfigError, match="does not say how tokens are checked"):
        settings(**{NAME + HANDLER: None})


@pytest.mark.parametrize("name", LOGIN_HANDLERS)
def test_a_class_that_gets_tokens_for_the_node_itself_is_known_by_its_name(name: str) -> None:
    assert settings(**{NAME + LOGIN_HANDLER: name}).secured
    with pytest.raises(ConfigError, match="cannot be loaded"):
        settings(**{NAME + LOGIN_HANDLER: name.replace("OAuthBearerLogin", "OAuthBearerUnsecuredLogin")})


def test_another_class_is_not_loaded() -> None:
    with pytest.raises(ConfigError, match="cannot be loaded"):
        settings(**{NAME + HANDLER: "com.example.Mine"})


@pytest.mark.parametrize("url", [None, "", "http://issuer/keys", "ftp://issuer/keys", "jar:file:/x", "data:,x"])
def test_keys_come_over_https_or_from_a_file(url: str | None) -> None:
    with pytest.raises(ConfigError, match="an https: or a file: URL"):
        settings(**{URL: url})
    assert settings(**{URL: "file:///etc/keys.json"}).url == "file:///etc/keys.json"


def test_the_login_module_says_how_the_keys_are_fetched() -> None:
    assert settings().tls == ()
    entry = f'{OAUTHBEARER_MODULE} required ssl.truststore.type="PEM" ssl.truststore.location="/a.pem" clientId="me";'
    found = settings(**{NAME + "sasl.jaas.config": entry})
    assert found.tls == (("ssl.truststore.location", "/a.pem"), ("ssl.truststore.type", "PEM"))


def test_options_that_only_java_has_do_not_say_how_the_keys_are_fetched() -> None:
    entry = f'{OAUTHBEARER_MODULE} required ssl.protocol="SSL" ssl.secure.random.implementation="SHA1PRNG";'
    assert settings(**{NAME + "sasl.jaas.config": entry}).tls == ()
    entry = f'{OAUTHBEARER_MODULE} required ssl.protocol="TLSv1.3";'
    assert settings(**{NAME + "sasl.jaas.config": entry}).tls == (("ssl.protocol", "TLSv1.3"),)


@pytest.mark.parametrize("missing", [ISSUER, AUDIENCE])
def test_issuer_and_audience_are_left_open_only_on_request(missing: str) -> None:
    with pytest.raises(ConfigError, match=f"{missing} must be set"):
        settings(**{missing: None})
    assert settings(**{missing: None, ANY_TOKEN: "true"}).secured


def test_tokens_without_a_signature_are_for_those_who_name_that_handler() -> None:
    jaas = f'{OAUTHBEARER_MODULE} required unsecuredValidatorPrincipalClaimName="n" unsecuredValidatorRequiredScope="a b" '
    found = settings(
        **{NAME + HANDLER: UNSECURED, NAME + "sasl.jaas.config": jaas + 'unsecuredValidatorAllowableClockSkewMs="7";'}
    )
    assert (found.secured, found.name_claim, found.required_scopes, found.skew_ms) == (False, "n", {"a", "b"}, 7)
    assert settings(**{NAME + HANDLER: UNSECURED}).name_claim == "sub"


@pytest.mark.parametrize("option", ["unsecuredValidatorAllowableClockSkewMs='soon'", "unsecuredValidatorWhat='x'"])
def test_an_option_that_means_nothing_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="unsecuredValidator"):
        settings(**{NAME + HANDLER: UNSECURED, NAME + "sasl.jaas.config": f"{OAUTHBEARER_MODULE} required {option};"})


def test_none_of_these_settings_can_be_changed_over_the_wire() -> None:
    names = [name for name in BROKER_OPTIONS if name.startswith("sasl.oauthbearer.")] + [HANDLER, ANY_TOKEN]
    assert {BROKER_OPTIONS[name].dynamic for name in names} == {READ_ONLY}
