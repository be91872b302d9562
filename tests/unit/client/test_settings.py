"""A client's settings: Kafka's and librdkafka's names, none ignored, every error with a way out."""

from __future__ import annotations

import pytest

from tidelog.client.kerberos import BY_CACHE, Kerberos
from tidelog.client.oauth import OAuth
from tidelog.client.settings import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ClientSettings,
    Sasl,
    parse_admin_settings,
    parse_settings,
    parse_tls,
)
from tidelog.model.errors import ConfigError

TICKETS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
    "sasl.jaas.config": BY_CACHE,
}


def settings(**given: str) -> ClientSettings:
    return parse_settings({"bootstrap.servers": "a:1", **{name.replace("_", "."): text for name, text in given.items()}})


def test_servers_are_a_list() -> None:
    assert parse_settings({"bootstrap.servers": " a:1, [::1]:2 ,"}).bootstrap == (("a", 1), ("::1", 2))
    assert parse_settings({"bootstrap.servers": "PLAINTEXT://a:1,SASL_SSL://[::1]:2"}).bootstrap == (("a", 1), ("::1", 2))


def test_what_was_aborted_is_not_read_unless_asked_for() -> None:
    assert settings().isolation_level == READ_COMMITTED
    assert settings(isolation_level="read_uncommitted").isolation_level == READ_UNCOMMITTED


def test_sasl_takes_the_names_of_either_client() -> None:
    expected = Sasl("SCRAM-SHA-256", "u", "p")
    told = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "u", "sasl_password": "p"}
    assert settings(security_protocol="sasl_plaintext", **told).sasl == expected
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p\\"q";'
    found = settings(security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=jaas)
    assert found.sasl == Sasl("SCRAM-SHA-256", "u", 'p"q')
    assert found.tls is not None


def test_the_password_may_be_a_delegation_token() -> None:
    for value in ("true", '"true"', "'TRUE'"):
        jaas = f'x.ScramLoginModule required username="id" password="aG1hYw==" tokenauth={value};'
        found = settings(security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=jaas)
        assert found.sasl == Sasl("SCRAM-SHA-256", "id", "aG1hYw==", token=True)
    jaas = "x.ScramLoginModule required username=id password=p tokenauth=false;"
    found = settings(security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=jaas)
    assert found.sasl == Sasl("SCRAM-SHA-256", "id", "p")


def test_tickets_come_by_a_keytab_or_from_a_cache() -> None:
    given = {"bootstrap.servers": "a:1", **TICKETS}
    assert parse_settings(given).sasl == Sasl("GSSAPI", "", "", kerberos=Kerberos("kafka", use_cache=True))
    keytab = {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "ann@R"}
    found = parse_admin_settings({name: text for name, text in given.items() if name != "sasl.jaas.config"} | keytab, "a:1")
    assert found.sasl == Sasl("GSSAPI", "ann@R", "", kerberos=Kerberos("kafka", "ann@R", "/k"))


def test_tokens_come_from_an_endpoint_a_file_or_a_function() -> None:
    url, credentials = "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.credentials.client."
    given = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    asked = parse_settings({**given, url: "https://login/token", credentials + "id": "job", credentials + "secret": "hush"})
    assert asked.sasl == Sasl(
        "OAUTHBEARER", "", "", oauth=OAuth(url="https://login/token", client_id="job", client_secret="hush")
    )
    assert "hush" not in repr(asked)
    jaas = 'x.OAuthBearerLoginModule required clientId="job" clientSecret="hush";'
    assert parse_settings({**given, url: "https://login/token", "sasl.jaas.config": jaas}).sasl == asked.sasl
    assert parse_settings({**given, url: "file:/a/token"}).sasl == Sasl("OAUTHBEARER", "", "", oauth=OAuth(file="/a/token"))
    supplied = parse_admin_settings(given, "a:1", token=str).sasl
    assert supplied == Sasl("OAUTHBEARER", "", "", oauth=OAuth(supply=str))
    with pytest.raises(ConfigError, match=r"sasl\.mechanism OAUTHBEARER"):
        parse_admin_settings({}, "a:1", token=str)
    plain = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    with pytest.raises(ConfigError, match="it must be OAUTHBEARER for that to have a meaning"):
        parse_settings({**given, **plain, url: "file:/a/token"})


def test_a_password_is_not_printed() -> None:
    found = settings(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="u", sasl_password="hush")
    assert "hush" not in repr(found)


def test_stores_are_named_by_location_and_odd_formats_are_refused() -> None:
    tls = settings(security_protocol="SSL", ssl_ca_location="/ca.pem", ssl_endpoint_identification_algorithm="").tls
    assert tls is not None
    assert (tls.ca_file, tls.verify, tls.verify_hostname) == ("/ca.pem", True, False)
    store = settings(security_protocol="SSL", ssl_keystore_type="PEM", ssl_keystore_location="/both.pem").tls
    assert store is not None
    assert (store.certificate_file, store.key_file) == ("/both.pem", "/both.pem")
    with pytest.raises(ConfigError, match="openssl pkcs12"):
        settings(security_protocol="SSL", ssl_truststore_location="/x.bks", ssl_truststore_type="BKS")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bootstrap.servers": ""}, "bootstrap.servers is missing"),
        ({"bootstrap.servers": "a"}, "must be host:port"),
        ({"fetch.max.byte": "1"}, r"'fetch.max.byte' is not known. Did you mean fetch.max.bytes"),
        ({"qqq": "1"}, "Known are: bootstrap.servers, check.crcs"),
        ({"auto.offset.reset": "earliest"}, "say startingOffsets"),
        ({"request.timeout.ms": "soon"}, "must be a number from 1 to"),
        ({"request.timeout.ms": "0"}, "must be a number from 1 to"),
        ({"check.crcs": "maybe"}, "must be true or false"),
        ({"isolation.level": "dirty"}, "must be one of read_uncommitted, read_committed"),
        ({"security.protocol": "TLS"}, "must be one of PLAINTEXT, SSL"),
        ({"sasl.username": "u"}, "security.protocol is PLAINTEXT: it must be"),
        ({"ssl.ca.location": "x"}, "it must be SSL or SASL_SSL"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "NTLM"}, "must be one of PLAIN, SCRAM-SHA-256"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "needs a Kerberos ticket"),
        ({**TICKETS, "sasl.username": "u"}, "no meaning with GSSAPI: sasl.jaas.config says"),
        ({**TICKETS, "sasl.mechanism": "PLAIN"}, "sasl.kerberos.service.name is set, .* it must be GSSAPI"),
        ({**TICKETS, "sasl.oauthbearer.scope": "s"}, "it must be OAUTHBEARER"),
        ({"sasl.kerberos.service.name": "kafka"}, "security.protocol is PLAINTEXT: it must be"),
        ({**TICKETS, "sasl.kerberos.kinit.cmd": "kinit"}, "fetches a ticket when a login needs one. Remove it"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"}, "needs a name and a password"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "k"}, "belong together"),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "u",
                "sasl.jaas.config": 'x required username="u" password="p";',
            },
            "say one of them",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": 'x required username="u" password="p" tokenauth="true";',
            },
            "must be a SCRAM one",
        ),
    ],
)
def test_a_wrong_setting_is_refused_with_what_would_be_right(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_settings({"bootstrap.servers": "a:1", **given})


def test_a_tool_passes_over_settings_that_a_connection_does_not_have_and_never_those_about_security() -> None:
    found = parse_admin_settings({"acks": "all", "group.id": "g", "client.id": "me", "fetch.min.bytes": "?"}, "b:1")
    assert (found.bootstrap, found.client_id, found.answer_timeout_ms) == ((("b", 1),), "me", 60_000)
    with pytest.raises(ConfigError, match=r"sasl\.login\.class' is not known"):
        parse_admin_settings({"sasl.login.class": "x"}, "b:1")


def test_stores_and_versions_of_tls() -> None:
    given = {"ssl.truststore.location": "/t", "ssl.truststore.password": "p", "ssl.protocol": "TLSv1.3"}
    tls = parse_tls({**given, "acks": "all"})
    assert (tls.ca_file, tls.ca_password, tls.versions) == ("/t", "p", ("TLSv1.3",))
    assert parse_tls({**given, "ssl.enabled.protocols": "TLSv1.2, TLSv1.3"}).versions == ("TLSv1.2", "TLSv1.3")
    with pytest.raises(ConfigError, match=r"ssl\.enabled\.protocols is 'SSLv3'"):
        parse_tls({"ssl.enabled.protocols": "SSLv3"})
