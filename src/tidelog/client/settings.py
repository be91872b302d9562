"""The settings of a Kafka client under the names that Java's and librdkafka's clients use: checked, typed, none ignored.

One table lists the settings. A setting without effect is refused with the reason, an unknown name with the closest known names.
Files (certificates, keys) are only named here; the drivers read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidelog.config.listeners import parse_address
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.client.kerberos import Kerberos
    from tidelog.client.oauth import OAuth

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
STORE_TYPES = ("PEM", "PKCS12", "JKS")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_ISOLATION = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
_JAAS = r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""


@dataclass(frozen=True, slots=True)
class Sasl:
    """The credentials for SASL."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    token: bool = False
    """Whether these are the id and the HMAC (base64) of a delegation token (KIP-48); SCRAM only."""
    oauth: OAuth | None = None
    """Where the tokens of OAUTHBEARER come from; each is the password of one login."""
    kerberos: Kerberos | None = None
    """Where the tickets of GSSAPI come from; ``username`` is the principal then, if it is set."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Trusted authorities and the client certificate. Each of the three is a file name or the PEM text itself; None: the
    system's trust store.

    A file is PEM, PKCS12 or JKS, decided by its content; the store passwords are for the latter two.
    """

    ca_file: str | None = None
    ca_text: str | None = None
    certificate_file: str | None = None
    certificate_text: str | None = field(default=None, repr=False)
    key_file: str | None = None
    key_text: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    ca_password: str | None = field(default=None, repr=False)
    store_password: str | None = field(default=None, repr=False)
    versions: tuple[str, ...] = ()
    verify: bool = True
    verify_hostname: bool = True


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of a reading client; times in ms, sizes in bytes."""

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str
    tls: Tls | None
    sasl: Sasl | None
    isolation_level: int
    check_crcs: bool
    connect_timeout_ms: int
    answer_timeout_ms: int
    api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    partition_max_bytes: int
    receive_buffer_bytes: int
    rack: str
    prefix: str = ""
    """What users write before setting names; errors include it."""


def _integer(lowest: int, highest: int = 0x7FFFFFFF) -> Any:
    def parse(name: str, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if not lowest <= value <= highest:
            raise ConfigError(f"{name} is {text!r}, and must be a number from {lowest} to {highest}.")
        return value

    return parse


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{name} is {text!r}, and must be true or false.")
    return text.lower() == "true"


def _one_of(*allowed: str) -> Any:
    def parse(name: str, text: str) -> str:
        if text not in allowed:
            raise ConfigError(f"{name} is {text!r}, and must be one of {', '.join(allowed)}.")
        return text

    return parse


def _text(name: str, text: str) -> str:
    return text


def _protocol(name: str, text: str) -> str:
    return str(_one_of(*PROTOCOLS)(name, text.upper()))


def _store_type(name: str, text: str) -> str:
    if text.upper() not in STORE_TYPES:
        raise ConfigError(
            f"{name} is {text!r}, and only {', '.join(STORE_TYPES)} can be read without Java: "
            "`keytool -importkeystore -deststoretype PKCS12` makes PKCS12 of it, `openssl pkcs12 -nodes` makes PEM of that."
        )
    return text.upper()


def _tls_versions(name: str, text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for each in found:
        _one_of(*TLS_VERSIONS)(name, each)
    return found


KNOWN: dict[str, tuple[Any, str | None]] = {
    "bootstrap.servers": (_text, None),
    "client.id": (_text, "tidelog"),
    "client.rack": (_text, ""),
    "security.protocol": (_protocol, "PLAINTEXT"),
    "sasl.mechanism": (_text, None),
    "sasl.mechanisms": (_text, None),
    "sasl.username": (_text, None),
    "sasl.password": (_text, None),
    "sasl.jaas.config": (_text, None),
    "sasl.kerberos.keytab": (_text, None),
    "sasl.kerberos.principal": (_text, None),
    "sasl.kerberos.service.name": (_text, None),
    "sasl.login.callback.handler.class": (_text, None),
    "sasl.oauthbearer.client.credentials.client.id": (_text, None),
    "sasl.oauthbearer.client.credentials.client.secret": (_text, None),
    "sasl.oauthbearer.header.urlencode": (_flag, None),
    "sasl.oauthbearer.jwt.retriever.class": (_text, None),
    "sasl.oauthbearer.scope": (_text, None),
    "sasl.oauthbearer.token.endpoint.url": (_text, None),
    "https.ca.location": (_text, None),
    "ssl.ca.location": (_text, None),
    "ssl.certificate.location": (_text, None),
    "ssl.key.location": (_text, None),
    "ssl.key.password": (_text, None),
    "ssl.protocol": (_one_of("TLS", *TLS_VERSIONS), None),
    "ssl.enabled.protocols": (_tls_versions, None),
    "ssl.truststore.type": (_store_type, None),
    "ssl.truststore.location": (_text, None),
    "ssl.truststore.password": (_text, None),
    "ssl.truststore.certificates": (_text, None),
    "ssl.keystore.type": (_store_type, None),
    "ssl.keystore.location": (_text, None),
    "ssl.keystore.password": (_text, None),
    "ssl.keystore.certificate.chain": (_text, None),
    "ssl.keystore.key": (_text, None),
    "ssl.endpoint.identification.algorithm": (_text, "https"),
    "enable.ssl.certificate.verification": (_flag, "true"),
    "isolation.level": (_one_of(*_ISOLATION), "read_committed"),
    "check.crcs": (_flag, "true"),
    "socket.connection.setup.timeout.ms": (_integer(1), "10000"),
    "request.timeout.ms": (_integer(1), "30000"),
    "default.api.timeout.ms": (_integer(1), "60000"),
    "retry.backoff.ms": (_integer(1), "100"),
    "retry.backoff.max.ms": (_integer(1), "1000"),
    "fetch.max.wait.ms": (_integer(0), "500"),
    "fetch.min.bytes": (_integer(0), "1"),
    "fetch.max.bytes": (_integer(1024), "52428800"),
    "max.partition.fetch.bytes": (_integer(1024), "4194304"),
    "receive.buffer.bytes": (_integer(-1), "-1"),
}
"""Parser and default of every setting. ``isolation.level`` differs from Kafka's default on purpose: aborted records are never
read. ``max.partition.fetch.bytes`` too: one partition is read at a time."""

_BY_LIBRARY = "is not used: the Kerberos library fetches a ticket when a login needs one. Remove it"
_BY_OPTION = "is not set here: which records are read is said by the options of the source (startingOffsets, subscribe, ...)"
REFUSED: dict[str, str] = {
    "auto.offset.reset": "is not set here: say startingOffsets",
    "enable.auto.commit": "is not set here: offsets are kept in the query's checkpoint",
    "key.deserializer": "is not set here: keys are bytes; decode them with DataFrame functions",
    "value.deserializer": "is not set here: values are bytes; decode them with DataFrame functions",
    "interceptor.classes": "names Java classes, and there is no Java in this client",
    "group.id": "is not used: no consumer group is joined, and offsets are kept in the query's checkpoint",
    "metadata.max.age.ms": "is not used: who leads what is asked for every batch, and when a broker says that it has moved",
    "partition.assignment.strategy": _BY_OPTION,
    "max.poll.records": "is not used: say maxOffsetsPerTrigger",
    "sasl.kerberos.kinit.cmd": _BY_LIBRARY,
    "sasl.kerberos.min.time.before.relogin": _BY_LIBRARY,
    "sasl.kerberos.ticket.renew.jitter": _BY_LIBRARY,
    "sasl.kerberos.ticket.renew.window.factor": _BY_LIBRARY,
}


def unknown(name: str, known: Mapping[str, Any], what: str) -> ConfigError:
    """The error for an unknown name, with the closest known names."""
    import difflib

    close = difflib.get_close_matches(name, list(known), 3, 0.6)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known are: {', '.join(sorted(known))}."
    return ConfigError(f"{what} {name!r} is not known. {hint}")


CONNECTION = frozenset(
    {"client.id", "socket.connection.setup.timeout.ms", "request.timeout.ms", "default.api.timeout.ms"}
    | {"retry.backoff.ms", "retry.backoff.max.ms", "enable.ssl.certificate.verification", "https.ca.location"}
)
SECURITY = ("security.", "sasl.", "ssl.")
_PROTOCOL_BEFORE = re.compile(r"^[A-Za-z0-9_]+://")
OF_MECHANISM = {
    "OAUTHBEARER": ("sasl.oauthbearer.", "sasl.login.callback."),
    "GSSAPI": ("sasl.kerberos.",),
}
"""How the settings begin that only one mechanism has."""


def parse_admin_settings(given: Mapping[str, str], bootstrap: str, token: Callable[[], str] | None = None) -> ClientSettings:
    """The settings of an admin client for ``bootstrap``, from a file that may also hold producer or consumer settings.

    Settings that do not concern a connection are ignored, as by Kafka's tools; security settings never are. ConfigError.
    ``token``: see ``parse_settings``.
    """
    own = {name: text for name, text in given.items() if name in CONNECTION or name.startswith(SECURITY)}
    return parse_settings({"request.timeout.ms": "60000", **own, "bootstrap.servers": bootstrap}, token=token)


def parse_settings(given: Mapping[str, str], prefix: str = "", token: Callable[[], str] | None = None) -> ClientSettings:
    """The checked settings. ConfigError names the first invalid one and what to do.

    ``prefix``: what users write before setting names, for later errors. ``token``: makes a token for OAUTHBEARER; it may block.
    """
    values: dict[str, Any] = {name: parse(name, text) for name, (parse, text) in KNOWN.items() if text is not None}
    for name, text in given.items():
        if name in REFUSED:
            raise ConfigError(f"{name} {REFUSED[name]}.")
        if name not in KNOWN:
            raise unknown(name, KNOWN, "The client setting")
        values[name] = KNOWN[name][0](name, text)
    protocol = values["security.protocol"]
    if not protocol.endswith("SSL"):
        _none_of(values, "ssl.", protocol)
    if not protocol.startswith("SASL"):
        _none_of(values, "sasl.", protocol)
    mechanism = values.get("sasl.mechanism") or values.get("sasl.mechanisms")
    if token is not None and (not protocol.startswith("SASL") or mechanism != "OAUTHBEARER"):
        raise ConfigError("A function makes tokens: security.protocol must be SASL_SSL, and sasl.mechanism OAUTHBEARER.")
    return ClientSettings(
        bootstrap=_servers(values.get("bootstrap.servers", "")),
        client_id=values["client.id"],
        tls=_tls(values) if protocol.endswith("SSL") else None,
        sasl=_sasl(values, token) if protocol.startswith("SASL") else None,
        isolation_level=_ISOLATION[values["isolation.level"]],
        check_crcs=values["check.crcs"],
        connect_timeout_ms=values["socket.connection.setup.timeout.ms"],
        answer_timeout_ms=values["request.timeout.ms"],
        api_timeout_ms=values["default.api.timeout.ms"],
        retry_backoff_ms=values["retry.backoff.ms"],
        retry_backoff_max_ms=max(values["retry.backoff.max.ms"], values["retry.backoff.ms"]),
        fetch_max_wait_ms=values["fetch.max.wait.ms"],
        fetch_min_bytes=values["fetch.min.bytes"],
        fetch_max_bytes=values["fetch.max.bytes"],
        partition_max_bytes=min(values["max.partition.fetch.bytes"], values["fetch.max.bytes"]),
        receive_buffer_bytes=values["receive.buffer.bytes"],
        rack=values["client.rack"],
        prefix=prefix,
    )


def _servers(text: str) -> tuple[tuple[str, int], ...]:
    # Kafka's clients take the name of a protocol before the address, and ignore it.
    parts = (_PROTOCOL_BEFORE.sub("", part.strip()) for part in text.split(","))
    found = tuple(parse_address("bootstrap.servers", part) for part in parts if part)
    if not found:
        raise ConfigError("bootstrap.servers is missing: say where a broker listens, as host:port,host:port.")
    return found


def _none_of(values: Mapping[str, Any], prefix: str, protocol: str) -> None:
    """Refuse security settings that would have no effect: ignoring them would be dangerous."""
    for name in values:
        if name.startswith(prefix) and KNOWN[name][1] is None:
            wanted = "SSL or SASL_SSL" if prefix == "ssl." else "SASL_PLAINTEXT or SASL_SSL"
            raise ConfigError(
                f"{name} is set, and security.protocol is {protocol}: it must be {wanted} for that to have a meaning."
            )


def _sasl(values: Mapping[str, Any], supply: Callable[[], str] | None) -> Sasl:
    mechanism = values.get("sasl.mechanism") or values.get("sasl.mechanisms")
    if mechanism not in MECHANISMS:
        given = (
            f"is {mechanism!r}, and" if mechanism else f"is not set, and with security.protocol={values['security.protocol']} it"
        )
        raise ConfigError(f"sasl.mechanism {given} must be one of {', '.join(MECHANISMS)}.")
    found = jaas_fields(values.get("sasl.jaas.config", ""))
    for name in values:
        for wanted, beginnings in OF_MECHANISM.items():
            if mechanism != wanted and name.startswith(beginnings):
                raise ConfigError(
                    f"{name} is set, and sasl.mechanism is {mechanism}: it must be {wanted} for that to have a meaning."
                )
    if mechanism == "OAUTHBEARER":
        from tidelog.client.oauth import oauth_settings  # Only for clients with tokens.

        return Sasl(mechanism, "", "", oauth=oauth_settings(values, found, supply))
    if mechanism == "GSSAPI":
        from tidelog.client.kerberos import kerberos_settings  # Only for clients with tickets.

        if "sasl.username" in values or "sasl.password" in values:
            raise ConfigError(
                "sasl.username and sasl.password have no meaning with GSSAPI: sasl.jaas.config says where the ticket is."
            )
        kerberos = kerberos_settings(values)
        return Sasl(mechanism, kerberos.principal, "", kerberos=kerberos)
    username, password = values.get("sasl.username"), values.get("sasl.password")
    token = False
    if "sasl.jaas.config" in values:
        if username is not None or password is not None:
            raise ConfigError("sasl.jaas.config and sasl.username are both set: say one of them.")
        username, password = found.get("username"), found.get("password")
        token = found.get("tokenauth", "").lower() == "true"
        if token and not mechanism.startswith("SCRAM-"):
            raise ConfigError(
                f"tokenauth is true in sasl.jaas.config, and sasl.mechanism is {mechanism}: it must be a SCRAM one."
            )
    if username is None or password is None:
        raise ConfigError(
            f"{mechanism} needs a name and a password: set sasl.username and sasl.password (or sasl.jaas.config with both)."
        )
    return Sasl(mechanism, username, password, token)


def jaas_fields(text: str) -> dict[str, str]:
    """The options of the login module in a client's ``sasl.jaas.config``, by name."""
    return {m[1]: m[4] or re.sub(r"\\(.)", r"\1", m[2] if m[2] is not None else m[3]) for m in re.finditer(_JAAS, text)}


def parse_tls(given: Mapping[str, str]) -> Tls:
    """The ``ssl.*`` settings among ``given``. ConfigError as for ``parse_settings``."""
    own = {name: text for name, text in given.items() if name.startswith("ssl.") or name == "enable.ssl.certificate.verification"}
    tls = parse_settings({**own, "security.protocol": "SSL", "bootstrap.servers": "localhost:1"}).tls
    assert tls is not None
    return tls


def _tls(values: Mapping[str, Any]) -> Tls:
    certificate = values.get("ssl.certificate.location") or values.get("ssl.keystore.location")
    tls = Tls(
        ca_file=values.get("ssl.ca.location") or values.get("ssl.truststore.location"),
        ca_text=values.get("ssl.truststore.certificates"),
        certificate_file=certificate,
        certificate_text=values.get("ssl.keystore.certificate.chain"),
        # In Kafka a PEM key store holds key and certificates in one file.
        key_file=values.get("ssl.key.location") or values.get("ssl.keystore.location"),
        key_text=values.get("ssl.keystore.key"),
        key_password=values.get("ssl.key.password"),
        ca_password=values.get("ssl.truststore.password"),
        store_password=values.get("ssl.keystore.password"),
        versions=_allowed_versions(values),
        verify=values["enable.ssl.certificate.verification"],
        verify_hostname=values["ssl.endpoint.identification.algorithm"].lower() not in ("", "none"),
    )
    if (tls.certificate_text is None) != (tls.key_text is None):
        raise ConfigError("ssl.keystore.certificate.chain and ssl.keystore.key belong together: set both or none.")
    return tls


def _allowed_versions(values: Mapping[str, Any]) -> tuple[str, ...]:
    """``ssl.enabled.protocols``, otherwise ``ssl.protocol`` if that names one version."""
    enabled: tuple[str, ...] = values.get("ssl.enabled.protocols", ())
    single = values.get("ssl.protocol")
    return enabled or ((single,) if single in TLS_VERSIONS else ())
