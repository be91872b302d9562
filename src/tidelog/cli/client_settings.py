"""Translates settings of Kafka's Java clients for librdkafka.

Files and flags of the console tools use the names that Kafka documents. Most are the same in librdkafka, some have another name
or unit, some have no meaning outside Java. Settings unknown here are passed on unchanged; librdkafka knows its own names and
refuses the rest by name.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from tidelog.cli import refusal
from tidelog.cli.refusal import text_of
from tidelog.config.jaas import KERBEROS_MODULE
from tidelog.config.properties import parse, parse_overrides
from tidelog.config.providers import PROVIDERS, without_values
from tidelog.model.errors import ConfigError

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.protocol": "",
}
"""Java's name -> librdkafka's; empty when there is no counterpart and none is needed."""

JAVA_ONLY = frozenset(
    {
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "security.providers",
        "socket.connection.setup.timeout.max.ms",
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "value.deserializer",
        "value.serializer",
    }
)
"""Settings about Java classes, and others that librdkafka does not have."""

ASSIGNORS = {
    "rangeassignor": "range",
    "roundrobinassignor": "roundrobin",
    "cooperativestickyassignor": "cooperative-sticky",
    "stickyassignor": "cooperative-sticky",
}
STORES = ("ssl.truststore.", "ssl.keystore.")
OF_TOKENS = ("sasl.oauthbearer.", "sasl.login.callback.handler.class", "sasl.jaas.config", "https.ca.location")
UNKNOWN_LIFE_S = 300
"""After how long librdkafka asks for another token, if the token does not say when it ends."""


def gather(files: Iterable[str | None], pairs: Iterable[str]) -> dict[str, str]:
    """Merges the settings of property files, then of ``key=value`` pairs; for equal keys the last wins. References of
    ``config.providers`` are replaced."""
    settings: dict[str, str] = {}
    for path in files:
        if path is not None:
            settings.update(parse(text_of(path)))
    settings.update(parse_overrides(pairs))
    if PROVIDERS in settings:
        from tidelog.cli.settings_files import client_settings  # Few clients have providers.

        found = client_settings(settings)
        refusal.hide(partial(without_values, settings=found.settings, provided=found.provided))
        return found.settings
    return settings


def to_librdkafka(settings: Mapping[str, str]) -> dict[str, Any]:
    """The settings for librdkafka: texts, and a function where it needs one. ConfigError for unsupported ones; a note on stderr
    for those without effect."""
    stores, tokens = _stores(settings), _tokens(settings)
    result: dict[str, Any] = {**stores, **tokens}
    for name, value in settings.items():
        if name.startswith(STORES) or (stores and name == "ssl.key.password") or (tokens and name.startswith(OF_TOKENS)):
            continue
        if name in JAVA_ONLY or name.startswith(("key.deserializer.", "value.deserializer.")):
            print(f"The setting {name} is one of Java clients; it does nothing here.", file=sys.stderr)
        elif name in SPECIAL:
            result.update(SPECIAL[name](value))
        elif name in RENAMED:
            if RENAMED[name]:
                result[RENAMED[name]] = value
        else:
            result[name] = value
    return result


def _stores(settings: Mapping[str, str]) -> dict[str, str]:
    """Certificates and keys from Java's trust and key stores, as PEM."""
    if not any(name.startswith(STORES) for name in settings):
        return {}
    from tidelog.client.net.tls import material
    from tidelog.client.settings import parse_tls

    try:
        found = material(parse_tls({name: text for name, text in settings.items() if name.startswith((*STORES, "ssl.key."))}))
    except (OSError, ValueError) as error:
        raise ConfigError(f"The certificates or the key of the ssl settings cannot be used: {error}.") from error
    made = {
        "ssl.ca.pem": found.authorities,
        "ssl.certificate.pem": found.certificates,
        "ssl.key.pem": found.key,
        "ssl.key.password": found.key_password,
    }
    return {name: text for name, text in made.items() if text is not None}


def _tokens(settings: Mapping[str, str]) -> dict[str, Any]:
    """A function that gives librdkafka the tokens of OAUTHBEARER, unless it gets them itself, by its own settings."""
    if settings.get("sasl.mechanism") != "OAUTHBEARER" or "sasl.oauthbearer.method" in settings:
        return {}
    if "sasl.oauthbearer.token.endpoint.url" not in settings:
        return {}
    from tidelog.client.net.bearer_tokens import BearerTokens
    from tidelog.client.oauth import life_s
    from tidelog.client.settings import parse_admin_settings

    own = {name: value for name, value in settings.items() if name.startswith((*OF_TOKENS, "sasl.mechanism", "security."))}
    sasl = parse_admin_settings(own, "localhost:1").sasl
    if sasl is None or sasl.oauth is None:
        return {}
    tokens = BearerTokens(sasl.oauth)

    def current(_: str) -> tuple[str, float]:
        token, now = tokens.token(), time.time()  # noqa: TID251
        return token, now + (life_s(token, now) or UNKNOWN_LIFE_S)

    return {"oauth_cb": current}


def check_reachable(settings: Mapping[str, str], bootstrap: str) -> None:
    """CannotConnect unless one of the servers accepts this client: librdkafka would retry for a minute or more. ConfigError for
    an address that is none.

    With settings that only librdkafka knows, and with GSSAPI, only the form of the address is checked.
    """
    from tidelog.cli.broker_connection import Session
    from tidelog.client.settings import parse_admin_settings
    from tidelog.protocol.messages.metadata import MetadataRequest

    parse_admin_settings({}, bootstrap)
    try:
        parsed = parse_admin_settings({**settings, "client.id": "probe"}, bootstrap)
    except ConfigError:
        return
    if parsed.sasl is not None and parsed.sasl.kerberos is not None:
        return  # librdkafka has a Kerberos library of its own
    with Session(parsed) as session:
        # A listener that asks for a login tells strangers its versions, and closes the connection at any other request.
        session.ask(MetadataRequest(topics=[]))


def _buffer_memory(value: str) -> dict[str, str]:
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


def _offset_reset(value: str) -> dict[str, str]:
    return {"auto.offset.reset": "error" if value == "none" else value}


def _strategy(value: str) -> dict[str, str]:
    """Replaces class names with librdkafka's names."""
    names = []
    for part in value.split(","):
        last = part.strip().rpartition(".")[2]
        names.append(ASSIGNORS.get(last.lower(), last))
    return {"partition.assignment.strategy": ",".join(dict.fromkeys(names))}


def _jaas(value: str) -> dict[str, str]:
    """The user and password from the JAAS login module for PLAIN or SCRAM."""
    from tidelog.client.settings import jaas_fields

    if KERBEROS_MODULE in value:
        raise ConfigError(
            "The console and perf tools run on librdkafka, whose packages for Python are built without GSSAPI. With a build that "
            "has it, set sasl.kerberos.service.name, sasl.kerberos.keytab and sasl.kerberos.principal, not sasl.jaas.config."
        )
    fields = jaas_fields(value)
    if not {"username", "password"} <= fields.keys():
        raise ConfigError(
            'sasl.jaas.config has no username="..." and password="..."; give sasl.username and sasl.password instead.'
        )
    if fields.get("tokenauth", "").lower() == "true":
        raise ConfigError(
            "sasl.jaas.config has tokenauth=true, and librdkafka, on which this tool runs, cannot log in by a delegation token. "
            "Log in as a user here."
        )
    return {"sasl.username": fields["username"], "sasl.password": fields["password"]}


def _endpoint_check(value: str) -> dict[str, str]:
    return {"ssl.endpoint.identification.algorithm": value.lower() or "none"}


SPECIAL = {
    "auto.offset.reset": _offset_reset,
    "buffer.memory": _buffer_memory,
    "partition.assignment.strategy": _strategy,
    "sasl.jaas.config": _jaas,
    "ssl.endpoint.identification.algorithm": _endpoint_check,
}
"""Settings whose value is converted as well."""
