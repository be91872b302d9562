"""Java's settings as librdkafka has them."""

import pytest

from tidelog.cli.client_settings import check_reachable, gather, to_librdkafka
from tidelog.cli.refusal import CannotConnect
from tidelog.model.errors import ConfigError
from tidelog.testing import Broker


def test_names_and_units_change_where_they_differ():
    java = {"acks": "all", "buffer.memory": "33554432", "fetch.max.wait.ms": "5", "send.buffer.bytes": "1", "linger.ms": "3"}
    assert to_librdkafka(java) == {
        "acks": "all",
        "queue.buffering.max.kbytes": "32768",
        "fetch.wait.max.ms": "5",
        "socket.send.buffer.bytes": "1",
        "linger.ms": "3",
    }


def test_settings_of_java_only_are_told_and_left_out(capsys):
    assert to_librdkafka({"key.serializer": "x", "max.poll.records": "5"}) == {}
    assert "key.serializer" in capsys.readouterr().err
    assert to_librdkafka({"ssl.enabled.protocols": "TLSv1.3", "sasl.login.class": "x"}) == {}
    assert "ssl.enabled.protocols" in capsys.readouterr().err


def test_assignors_go_by_their_short_names():
    classes = "org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert to_librdkafka({"partition.assignment.strategy": classes}) == {
        "partition.assignment.strategy": "range,cooperative-sticky"
    }


def test_a_login_module_gives_user_and_password():
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="a\\"b";'
    assert to_librdkafka({"sasl.jaas.config": jaas}) == {"sasl.username": "ann", "sasl.password": 'a"b'}
    with pytest.raises(ConfigError, match=r"sasl\.username"):
        to_librdkafka({"sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required;"})
    with pytest.raises(ConfigError, match=r"librdkafka.* without GSSAPI.*sasl\.kerberos\.keytab"):
        to_librdkafka({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"})


@pytest.mark.parametrize("options", ["username='ann' password='a b';", "username=ann password='a b';"])
def test_a_login_module_may_be_written_with_any_quotes(options):
    jaas = f"org.apache.kafka.common.security.scram.ScramLoginModule required {options}"
    assert to_librdkafka({"sasl.jaas.config": jaas}) == {"sasl.username": "ann", "sasl.password": "a b"}


def test_a_delegation_token_is_refused_because_librdkafka_cannot_use_it():
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="i" password="h" tokenauth="true";'
    with pytest.raises(ConfigError, match="delegation token"):
        to_librdkafka({"sasl.jaas.config": jaas})


def test_librdkafka_gets_tokens_from_a_function_of_ours(tmp_path):
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
        "linger.ms": "3",
    }
    found = to_librdkafka(java)
    token, _ = found.pop("oauth_cb")("")
    assert token == "a.b.c"
    assert found == {"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER", "linger.ms": "3"}
    with pytest.raises(ConfigError, match="names a Java class"):
        to_librdkafka(java | {"sasl.login.callback.handler.class": "x.Handler"})
    own = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "job"}
    assert to_librdkafka(own) == {"sasl.mechanisms": "OAUTHBEARER"} | {name: own[name] for name in list(own)[1:]}


def test_properties_win_over_files(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("acks=1\nlinger.ms=7\n")
    assert gather([None, str(file)], ["acks=all"]) == {"acks": "all", "linger.ms": "7"}


def test_stores_become_pem_for_librdkafka(tmp_path):
    both = tmp_path / "both.pem"
    key = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n"
    certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
    both.write_text(f"a key\n{key}its certificate\n{certificate}")
    given = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "PEM of authorities",
        "ssl.keystore.location": str(both),
        "ssl.key.password": "p",
    }
    assert to_librdkafka(given) == {
        "ssl.ca.pem": "PEM of authorities",
        "ssl.certificate.pem": certificate,
        "ssl.key.pem": key,
        "ssl.key.password": "p",
    }
    with pytest.raises(ConfigError, match=r"cannot be used: /nowhere\.pem cannot be read: No such file or directory\."):
        to_librdkafka({"ssl.truststore.location": "/nowhere.pem"})


def test_an_address_without_a_port_is_refused_whatever_the_settings_are():
    for settings in ({}, {"linger.ms": "3", "sasl.mechanism": "OAUTHBEARER", "security.protocol": "SASL_SSL"}):
        with pytest.raises(ConfigError, match="must be host:port"):
            check_reachable(settings, "localhost")


def test_a_listener_that_asks_for_a_login_does_not_accept_a_client_without_one():
    with Broker(users={"ann": "secret"}) as broker:
        check_reachable(broker.access.java_settings("ann"), broker.bootstrap_servers)
        with pytest.raises(CannotConnect, match=r"security\.protocol"):
            check_reachable({}, broker.bootstrap_servers)


def test_a_login_by_kerberos_is_left_to_librdkafka() -> None:
    given = {"sasl.mechanism": "GSSAPI", "security.protocol": "SASL_PLAINTEXT", "sasl.kerberos.service.name": "kafka"}
    check_reachable({**given, "sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "ann@REALM"}, "127.0.0.1:1")


def test_what_only_librdkafka_knows_is_left_to_it_and_the_rest_is_tried():
    check_reachable({"sasl.mechanism": "OAUTHBEARER", "security.protocol": "SASL_SSL"}, "127.0.0.1:1")
    with pytest.raises(CannotConnect, match=r"127\.0\.0\.1:1"):
        check_reachable({"acks": "all"}, "127.0.0.1:1")
