"""The SASL settings of one listener, with Kafka's prefixes (KIP-103, KIP-226, KIP-368).

``listener.name.<listener>.<option>`` beats the bare option, and ``listener.name.<listener>.<mechanism>.<option>`` beats both for
the options that belong to a mechanism; listener and mechanism are written in lower case. Kafka ignores a ``sasl.jaas.config``
without listener and mechanism; here it stops the start, because it looks as if it had an effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.jaas import KERBEROS_MODULE, OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE, JaasEntry, parse_jaas
from tidelog.config.listener_gssapi import EXAMPLE, GssapiSettings, gssapi_settings
from tidelog.config.listener_oauth import (
    HANDLER,
    HANDLERS,
    LOGIN_HANDLER,
    LOGIN_HANDLERS,
    OF_LOGINS,
    OAuthSettings,
    oauth_settings,
)
from tidelog.config.values import NodeValues
from tidelog.model.errors import ConfigError

MODULE_OF = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": OAUTHBEARER_MODULE,
    "GSSAPI": KERBEROS_MODULE,
}
"""The mechanisms that are served, and the login module of each."""
_CALLBACKS: Mapping[str, tuple[str, ...]] = {HANDLER: HANDLERS, "sasl.login.class": (), LOGIN_HANDLER: LOGIN_HANDLERS}
"""The settings that name Java classes, and the classes of OAUTHBEARER that are known by their names."""
JAAS, MECHANISMS = "sasl.jaas.config", "sasl.enabled.mechanisms"


class SaslMechanismSettings(NamedTuple):
    """One mechanism of one listener."""

    name: str
    jaas: JaasEntry | None
    """The users (PLAIN), the keytab (GSSAPI) and the node's own login; None where SCRAM or OAUTHBEARER have no login of their
    own."""
    max_reauth_ms: int
    """The longest session before the client must authenticate again; 0 for no limit."""
    oauth: OAuthSettings | None = None
    """Which tokens are accepted; only for OAUTHBEARER."""
    gssapi: GssapiSettings | None = None
    """As which service tickets are accepted; only for GSSAPI."""


class SaslSettings(NamedTuple):
    """The SASL settings of a listener."""

    mechanisms: Mapping[str, SaslMechanismSettings]
    """By name, in the order in which they are offered."""
    max_receive_bytes: int
    """The largest frame of a client that has not authenticated."""
    failed_delay_ms: int
    """How long the answer to a failed authentication is held back."""


class ListenerOptions:
    """The options of a node as one listener sees them."""

    __slots__ = ("_given", "_prefix")

    def __init__(self, given: Mapping[str, str], listener: str) -> None:
        self._given = given
        self._prefix = f"listener.name.{listener.lower()}."

    def get(self, option: str, mechanism: str = "") -> tuple[str, str] | None:
        """(the name that was given, its text), the most specific first; None when no name was given."""
        for name in self._names(option, mechanism):
            if name in self._given:
                return name, self._given[name]
        return None

    def given_name(self, option: str) -> str:
        """The name under which the option was given, or the bare one."""
        found = self.get(option)
        return option if found is None else found[0]

    def value(self, option: str, mechanism: str = "") -> object:
        """The parsed value, or the default. ConfigError names the setting as it was given."""
        row = BROKER_OPTIONS[option]
        found = self.get(option, mechanism)
        if found is None:
            return row.default
        name, text = found
        try:
            return row.parse(text)
        except ConfigError as problem:
            raise ConfigError(str(problem).replace(option, name, 1)) from None

    def specific(self, option: str, mechanism: str) -> str | None:
        """The text that was given for this listener and mechanism; a bare option does not count."""
        return self._given.get(f"{self._prefix}{mechanism.lower()}.{option}")

    def own_name(self, option: str) -> str:
        """The name under which the option belongs to this listener."""
        return self._prefix + option

    def full_name(self, option: str, mechanism: str) -> str:
        """The name under which the option belongs to this listener and mechanism."""
        return f"{self._prefix}{mechanism.lower()}.{option}"

    def _names(self, option: str, mechanism: str) -> Iterator[str]:
        if mechanism:
            yield self.full_name(option, mechanism)
        yield self.own_name(option)
        yield option


def offered_mechanisms(given: Mapping[str, str], listener: str) -> list[str]:
    """The names of the mechanisms that a listener offers, in that order. ConfigError for none, and for one that is not served."""
    options = ListenerOptions(given, listener)
    names = [str(each).upper() for each in _listed(options.value("sasl.enabled.mechanisms"))]
    if not names:
        raise ConfigError(
            f"listener {listener} speaks SASL, but {MECHANISMS} is empty. Name at least one of {', '.join(MODULE_OF)}."
        )
    for name in names:
        if name not in MODULE_OF:
            raise ConfigError(
                f"listener {listener} offers {name} ({MECHANISMS}), which is not served; {', '.join(MODULE_OF)} are."
            )
    return names


def sasl_settings(given: Mapping[str, str], listener: str) -> SaslSettings:
    """The SASL settings of a listener. ConfigError says what to add or to change."""
    options = ListenerOptions(given, listener)
    if JAAS in given:
        raise ConfigError(
            f"{JAAS} has no effect on a node without a listener and a mechanism in its name; write "
            f"{options.full_name(JAAS, 'PLAIN')} or the like."
        )
    names = offered_mechanisms(given, listener)
    for name in names:
        _check_classes(options, listener, name, "OAUTHBEARER" in names)
    mechanisms = {name: _mechanism(options, listener, name) for name in names}
    receive, delay = options.value("sasl.server.max.receive.size"), options.value("connection.failed.authentication.delay.ms")
    idle = options.value("connections.max.idle.ms")
    assert isinstance(receive, int)
    assert isinstance(delay, int)
    assert isinstance(idle, int)
    if 0 <= idle <= delay:
        raise ConfigError(
            f"connection.failed.authentication.delay.ms is {delay}, but must be less than connections.max.idle.ms, now {idle}."
        )
    return SaslSettings(mechanisms, receive, delay)


def login_warnings(config: NodeValues, given: Mapping[str, str]) -> Iterator[str]:
    """The settings of logins by tokens that a node has and does not use, because it logs in to no other one by OAUTHBEARER."""
    towards = [("sasl.mechanism.inter.broker.protocol", config.inter_broker_listener)]
    towards += [("sasl.mechanism.controller.protocol", name.upper()) for name in config.controller_listener_names[:1]]
    for option, listener in [] if config.embedded else towards:
        if config.protocol_map.get(listener, "PLAINTEXT").startswith("SASL_"):
            named = given.get(option)
            if "OAUTHBEARER" in ([named] if named else offered_mechanisms(given, listener)):
                return
    for name in given:
        if name.endswith(OF_LOGINS):
            yield f"{name} has no effect: this node logs in to no other by OAUTHBEARER (sasl.mechanism.inter.broker.protocol)."


def _check_classes(options: ListenerOptions, listener: str, name: str, offers_tokens: bool) -> None:
    """ConfigError for a Java class that a mechanism would need. A class of OAUTHBEARER may stand in a setting that other
    mechanisms have in common with it."""
    for option, known in _CALLBACKS.items():
        setting, named = options.get(option, name) or (option, "")
        if not named or (name == "OAUTHBEARER" and (option == HANDLER or named in known)):
            continue  # oauth_settings refuses what it does not know
        if named not in known:
            advice = f"; {known[0]} is known by its name" if name == "OAUTHBEARER" and known else ". Remove it"
            raise ConfigError(f"{setting} names a Java class, which cannot be loaded{advice}.")
        if setting == option or (setting == options.own_name(option) and offers_tokens):
            continue
        why = f"but is a setting of {name}" if offers_tokens else f"which listener {listener} does not offer"
        raise ConfigError(f"{setting} names a class of OAUTHBEARER, {why}. Remove it.")


def _mechanism(options: ListenerOptions, listener: str, name: str) -> SaslMechanismSettings:
    full = options.full_name(JAAS, name)
    text = options.specific(JAAS, name)
    jaas = None
    if text is not None:
        jaas = parse_jaas(text, full)
        if jaas.module != MODULE_OF[name]:
            raise ConfigError(f"{full} has the login module {jaas.module}, but {name} needs {MODULE_OF[name]}.")
    elif name == "GSSAPI":
        default = "" if options.get(MECHANISMS) else f", because {MECHANISMS} is not set"
        raise ConfigError(
            f"listener {listener} offers GSSAPI (Kerberos){default}, but names no keytab. Set {full} to: {EXAMPLE} "
            f"Without Kerberos, set {options.own_name(MECHANISMS)}=SCRAM-SHA-512 or another one of {', '.join(MODULE_OF)}."
        )
    elif name == "PLAIN":
        raise ConfigError(
            f'listener {listener} offers PLAIN, but names no users. Set {full} to: {PLAIN_MODULE} required user_alice="...";'
        )
    reauth = options.value("connections.max.reauth.ms", name)
    assert isinstance(reauth, int)
    oauth = None
    if name == "OAUTHBEARER":
        handler = options.get(HANDLER, name)
        oauth = oauth_settings(lambda option: options.value(option, name), handler, jaas)
    gssapi = None
    if name == "GSSAPI":
        assert jaas is not None
        gssapi = gssapi_settings(options.value, jaas, full)
    return SaslMechanismSettings(name, jaas, max(0, reauth), oauth, gssapi)


def _listed(value: object) -> tuple[object, ...]:
    assert isinstance(value, tuple)
    return value
