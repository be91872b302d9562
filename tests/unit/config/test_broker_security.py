"""Options of security: nothing of it may be silent."""

from __future__ import annotations

from tidelog.config.broker_security import OPTIONS
from tidelog.config.options import Type
from tidelog.config.resolve import BrokerConfig

TLS = [
    "allow.dn.changes",
    "allow.san.changes",
    "cipher.suites",
    "client.auth",
    "enabled.protocols",
    "endpoint.identification.algorithm",
    "engine.factory.class",
    "key.password",
    "keystore.certificate.chain",
    "keystore.key",
    "keystore.location",
    "keystore.password",
    "keystore.type",
    "principal.mapping.rules",
    "truststore.certificates",
    "truststore.location",
    "truststore.password",
    "truststore.type",
]


def test_every_security_option_acts_or_refuses_to_start_or_says_that_it_has_no_effect() -> None:
    acting = {option.name for option in OPTIONS if option.inert is None and option.refuses is None}
    assert acting == {
        "authorizer.class.name",
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "delegation.token.expiry.check.interval.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.max.lifetime.ms",
        "delegation.token.secret.key",
        "sasl.enabled.mechanisms",
        "sasl.login.callback.handler.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.server.callback.handler.class",
        "sasl.server.max.receive.size",
        *(f"ssl.{name}" for name in TLS),
    }


def test_what_would_leave_a_plain_node_open_refuses_to_start() -> None:
    refusing = {option.name for option in OPTIONS if option.refuses}
    assert refusing == {"principal.builder.class"}


def test_every_password_and_key_is_a_secret() -> None:
    for option in OPTIONS:
        if option.name.endswith((".password", ".passphrase", ".secret", ".secret.key", ".jaas.config", "keystore.key")):
            assert option.type is Type.PASSWORD, option


def test_when_tokens_are_replaced_may_stand_in_the_clusters_metadata() -> None:
    """A cluster that comes from Apache Kafka may hold these, and no broker may refuse to start for them."""
    config = BrokerConfig.from_properties(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.quorum.voters": "1@localhost:1",
            "listeners": "PLAINTEXT://:0,CONTROLLER://:1",
            "controller.listener.names": "CONTROLLER",
        }
    )
    assert config.apply_dynamic({"sasl.login.refresh.window.factor": "0.7"}, {"sasl.login.refresh.buffer.seconds": "10"})
