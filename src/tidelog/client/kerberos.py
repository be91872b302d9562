"""With which Kerberos ticket a client logs in (GSSAPI): fetched with a keytab, or one of a ticket cache.

The names are those of Java's clients (``sasl.kerberos.service.name``, and the options of ``Krb5LoginModule`` in
``sasl.jaas.config``); ``sasl.kerberos.keytab`` and ``sasl.kerberos.principal`` are librdkafka's. Nothing of Java runs: an option
that would do something else there is refused. ``client.net.tickets`` fetches the tickets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.config.jaas import KERBEROS_MODULE, parse_jaas
from tidelog.model.errors import ConfigError

SERVICE = "sasl.kerberos.service.name"
KEYTAB = "sasl.kerberos.keytab"
PRINCIPAL = "sasl.kerberos.principal"
JAAS = "sasl.jaas.config"
TEXTS = (SERVICE, KEYTAB, PRINCIPAL)
"""The settings that only GSSAPI has."""
BY_KEYTAB = f'{KERBEROS_MODULE} required useKeyTab=true keyTab="/etc/ann.keytab" principal="ann@REALM";'
BY_CACHE = f"{KERBEROS_MODULE} required useTicketCache=true;"
_USED = ("useKeyTab", "keyTab", "principal", "useTicketCache", "ticketCache", "serviceName")
_WITHOUT_EFFECT = ("storeKey", "doNotPrompt", "debug", "refreshKrb5Config")
"""What Java keeps in memory, asks and prints; it does not change the login."""
_FIXED = {"renewTGT": "false", "isInitiator": "true"}
"""The only value of each that can be kept."""


class NoTicket(Exception):
    """There is no ticket to log in with; the text says why. ``unreachable``: no KDC answers; it may later."""

    def __init__(self, text: str, *, unreachable: bool = False) -> None:
        super().__init__(text)
        self.unreachable = unreachable


@dataclass(frozen=True, slots=True)
class Kerberos:
    """Where tickets come from. With a cache and a keytab, the cache counts as long as it has a ticket, as in Java."""

    service: str
    """The first part of the brokers' principals, such as ``kafka`` in ``kafka/broker-1.example.com@REALM``."""
    principal: str = ""
    """Of the client, such as ``ann@REALM``; empty: the one that the ticket cache belongs to."""
    keytab: str | None = None
    """The path of the file with the client's key."""
    use_cache: bool = False
    cache: str | None = None
    """The ticket cache; None: the library's default one (KRB5CCNAME)."""


def kerberos_settings(values: Mapping[str, Any]) -> Kerberos:
    """``values``: the client's settings. ConfigError says what to set."""
    if JAAS in values:
        for name in (KEYTAB, PRINCIPAL):
            if name in values:
                raise ConfigError(f"{JAAS} and {name} are both set: say one of them.")
        options = _options(values[JAAS])
    elif KEYTAB in values:
        options = {"useKeyTab": "true", "keyTab": values[KEYTAB], "principal": values.get(PRINCIPAL, "")}
    else:
        raise ConfigError(
            f"GSSAPI needs a Kerberos ticket. For one by a keytab, set {JAAS} to: {BY_KEYTAB} For the one that kinit fetched, "
            f"to: {BY_CACHE}"
        )
    by_keytab, by_cache = (_is_on(options, name) for name in ("useKeyTab", "useTicketCache"))
    if not by_keytab and not by_cache:
        raise ConfigError(f"{JAAS}: Krb5LoginModule needs useKeyTab=true or useTicketCache=true; passwords are not asked for.")
    for name, switch, is_on in (("keyTab", "useKeyTab", by_keytab), ("ticketCache", "useTicketCache", by_cache)):
        if name in options and not is_on:
            raise ConfigError(f"{JAAS}: {name} has no effect without {switch}=true.")
    keytab, principal = options.get("keyTab", "").removeprefix("FILE:"), options.get("principal", "")
    if by_keytab and not (keytab and principal):
        where = PRINCIPAL if JAAS not in values else f"principal of {JAAS}"
        missing = where if keytab else f"keyTab of {JAAS}"
        raise ConfigError(f"A login by keytab needs {missing}, as in: {BY_KEYTAB}")
    service = _service(values.get(SERVICE, ""), options.get("serviceName", ""))
    return Kerberos(service, principal, keytab if by_keytab else None, by_cache, options.get("ticketCache"))


def _options(text: str) -> Mapping[str, str]:
    entry = parse_jaas(text, JAAS)
    if entry.module != KERBEROS_MODULE:
        raise ConfigError(f"{JAAS} has the login module {entry.module}, but GSSAPI needs {KERBEROS_MODULE}.")
    for name, value in entry.options.items():
        if name in _FIXED and value.lower() != _FIXED[name]:
            raise ConfigError(f"{JAAS}: {name}={value[:20]} has no meaning here: remove it. `kinit -R` renews a ticket.")
        if name not in (*_USED, *_WITHOUT_EFFECT, *_FIXED):
            known = ", ".join(_USED)
            raise ConfigError(f"{JAAS}: Krb5LoginModule has the option {name[:50]}, which has no meaning here; {known} have one.")
    return entry.options


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


def _service(of_setting: str, of_jaas: str) -> str:
    if of_setting and of_jaas and of_setting != of_jaas:
        raise ConfigError(f"{SERVICE} is {of_setting}, and serviceName in {JAAS} is {of_jaas}. Set one of them.")
    if not of_setting and not of_jaas:
        raise ConfigError(
            f"GSSAPI needs {SERVICE}: the first part of the brokers' principals, such as kafka in "
            "kafka/broker-1.example.com@REALM."
        )
    return of_setting or of_jaas
