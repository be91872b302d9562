"""How this node opens a connection to another one: TLS and its own login where the listener has them, and versions. It logs in
again before a session ends (KIP-368)."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, NamedTuple

from tidelog.client.connection_opening import authentication, versions
from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.async_connection import Line
from tidelog.config.listeners import address_text
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.server.runtime import LoopRuntime

if TYPE_CHECKING:
    from tidelog.client.settings import Sasl
    from tidelog.config.listener_gssapi import GssapiSettings
    from tidelog.server.cluster.node_tickets import NodeTickets
    from tidelog.server.cluster.node_tokens import NodeTokens
    from tidelog.server.serving.node_tls import TlsClient

NONCE_BYTES = 24
BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
BY_TOKEN = "OAUTHBEARER"
BY_TICKET = "GSSAPI"


class NodeLogin(NamedTuple):
    """What a listener of other nodes asks of this one."""

    sasl: Sasl | None = None
    tls: TlsClient | None = None
    tokens: NodeTokens | None = None
    """Where the mechanism wants one for each login."""
    tickets: NodeTickets | None = None
    """For a login by GSSAPI."""


PLAIN_TEXT = NodeLogin()


def to_brokers(config: BrokerConfig, runtime: LoopRuntime, tls: TlsClient | None) -> NodeLogin:
    """What the listener between brokers asks of this node. ConfigError without a login for it."""
    return _with_source(config, config.inter_broker_listener, runtime, NodeLogin(broker_login(config), tls))


def to_controllers(config: BrokerConfig, runtime: LoopRuntime, tls: TlsClient | None) -> NodeLogin:
    """What the controllers' listener asks of this node. ConfigError without a login for it."""
    sasl = controller_login(config)
    listener = config.controller_listener_names[0].upper() if sasl is not None else ""
    return _with_source(config, listener, runtime, NodeLogin(sasl, tls))


def _with_source(config: BrokerConfig, listener: str, runtime: LoopRuntime, login: NodeLogin) -> NodeLogin:
    """The login with what fetches its tokens or tickets."""
    if login.sasl is not None and login.sasl.kerberos is not None:
        from tidelog.server.cluster.node_tickets import NodeTickets  # Only for a node that logs in with tickets.

        return login._replace(tickets=NodeTickets(login.sasl.kerberos))
    if login.sasl is None or login.sasl.mechanism != BY_TOKEN:
        return login
    # Only for a node that logs in with tokens.
    from tidelog.server.cluster.node_tokens import NodeTokens
    from tidelog.server.cluster.token_source import Renewal, renewal, token_source

    def replaced() -> Renewal:
        return renewal({**config.static, **config.dynamic_default, **config.dynamic_broker}, listener)

    return login._replace(tokens=NodeTokens(listener, token_source(config.static, listener), runtime, renewal=replaced))


def broker_login(config: BrokerConfig) -> Sasl | None:
    """How this node logs in on other brokers; None without SASL between them, or without other brokers."""
    if config.embedded:
        return None
    option = "sasl.mechanism.inter.broker.protocol"
    mechanism = config.sasl_mechanism_inter_broker_protocol if option in config.static else None
    return own_login(config, config.inter_broker_listener, mechanism, option)


def controller_login(config: BrokerConfig) -> Sasl | None:
    """How this node logs in on controllers; None without SASL there. Kafka, too, goes by the first controller listener."""
    if config.embedded or not config.controller_listener_names:
        return None
    option = "sasl.mechanism.controller.protocol"
    mechanism = config.sasl_mechanism_controller_protocol if option in config.static else None
    return own_login(config, config.controller_listener_names[0].upper(), mechanism, option)


def own_login(config: BrokerConfig, listener: str, mechanism: str | None, option: str) -> Sasl | None:
    """How this node logs in on a listener of other nodes, without what fetches its tokens; None for a listener without SASL.

    ``mechanism``: the value of ``option``; None where it is not set: the first mechanism with a name and a password, otherwise
    OAUTHBEARER where it is offered, otherwise GSSAPI. ConfigError without a login.
    """
    if not config.protocol_map.get(listener, "PLAINTEXT").startswith("SASL_"):
        return None
    from tidelog.config.listener_sasl import offered_mechanisms, sasl_settings

    offered = offered_mechanisms(config.static, listener)
    if mechanism is not None and mechanism not in offered:
        raise ConfigError(
            f"{option} is {mechanism}, but listener {listener} offers {', '.join(offered)} (sasl.enabled.mechanisms)."
        )
    from tidelog.client.settings import Sasl  # The settings of clients: only for a node that logs in.

    tried = [mechanism] if mechanism is not None else offered
    for name in [each for each in tried if each in BY_PASSWORD]:
        settings = sasl_settings(config.static, listener).mechanisms[name]
        options = settings.jaas.options if settings.jaas is not None else {}
        if options.get("username") and options.get("password"):
            return Sasl(name, options["username"], options["password"])
    if BY_TOKEN in tried:
        return Sasl(BY_TOKEN, "", "")  # NodeTokens knows where they come from.
    if BY_TICKET in tried:
        gssapi = sasl_settings(config.static, listener).mechanisms[BY_TICKET].gssapi
        assert gssapi is not None
        return _by_ticket(gssapi)
    wanted = (mechanism or offered[0]).lower()
    raise ConfigError(
        f"this node has no login for listener {listener}; put username and password into "
        f"listener.name.{listener.lower()}.{wanted}.sasl.jaas.config ({option})."
    )


def _by_ticket(own: GssapiSettings) -> Sasl:
    from tidelog.client.kerberos import Kerberos
    from tidelog.client.settings import Sasl

    # All nodes have a principal of one service, the one that clients ask for.
    service = own.principal.partition("@")[0].partition("/")[0]
    return Sasl(BY_TICKET, own.principal, "", kerberos=Kerberos(service, own.principal, own.keytab))


async def open_line(runtime: LoopRuntime, line: Line, login: NodeLogin, host: str, port: int, address: str) -> None:
    """Connects ``line`` to ``address``, which is that of ``host``. OSError or ProtocolViolation when the connection ends,
    NotAuthenticated when one of the nodes refuses the other."""
    loop, where = runtime.loop, address_text(host, port)
    try:
        if login.tls is None:
            await loop.create_connection(lambda: line, address, port)
        else:
            await loop.create_connection(lambda: line, address, port, ssl=login.tls.context, server_hostname=host)
        await line.converse(versions(line.machine), loop)
    except ssl.SSLCertVerificationError as error:
        raise NotAuthenticated(
            f"the certificate of {where} is not trusted: {error.verify_message} (ssl.truststore.*; the names in it must hold "
            "the advertised one, unless ssl.endpoint.identification.algorithm is empty)"
        ) from error
    except ssl.SSLError as error:
        # In TLS 1.3 the refusal of a certificate comes after the handshake.
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise NotAuthenticated(f"no TLS with {where}: {reason}") from error
    await log_in(runtime, line, login, host, port)


async def log_in(runtime: LoopRuntime, line: Line, login: NodeLogin, host: str, port: int) -> None:
    """Logs in on ``line``, the first time or again; nothing else may be sent meanwhile. Raises as ``open_line`` does."""
    sasl, token = login.sasl, ""
    if sasl is None:
        return
    import secrets  # Only where nodes log in.

    if login.tokens is not None:
        from dataclasses import replace

        token = await login.tokens.token()
        sasl = replace(sasl, password=token)
    ticket = None if login.tickets is None else await login.tickets.ticket(host)
    where = address_text(host, port)
    opening = authentication(line.machine, sasl, where, secrets.token_urlsafe(NONCE_BYTES), ticket=ticket)
    try:
        await line.log_in(opening, runtime.loop, runtime.rng.random())
    except NotAuthenticated:
        if login.tokens is not None:
            login.tokens.refused(token)
        raise
