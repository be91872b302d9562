"""The GSSAPI (Kerberos) settings of one listener: as which service the node accepts tickets, and which user a ticket is.

The node is given by a JAAS entry of Java's Krb5LoginModule. Nothing of Java runs: the keytab and the principal are read from it,
and an option that would do something else in Java is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tidelog.config.jaas import KERBEROS_MODULE, JaasEntry
from tidelog.model.errors import ConfigError

SERVICE = "sasl.kerberos.service.name"
RULES = "sasl.kerberos.principal.to.local.rules"
_KNOWN = ("keyTab", "principal", "serviceName", "storeKey", "useKeyTab")
_SWITCHES = ("useKeyTab", "storeKey")
EXAMPLE = (
    f'{KERBEROS_MODULE} required useKeyTab=true storeKey=true keyTab="/etc/tidelog/kafka.keytab" principal="kafka/HOST@REALM";'
)


class GssapiSettings(NamedTuple):
    """What a listener accepts tickets with."""

    principal: str
    """Of the node, such as ``kafka/broker-1.example.com@EXAMPLE.COM``."""
    keytab: str
    """The path of the file with its key."""
    rules: tuple[str, ...]
    """How principals become user names, see ``security.kerberos_names``."""


def gssapi_settings(value: Callable[[str], Any], jaas: JaasEntry, setting: str) -> GssapiSettings:
    """``value``: an option as the listener sees it; ``setting``: the name under which ``jaas`` was given.

    ConfigError says what to set.
    """
    options = jaas.options
    if unknown := sorted(set(options) - set(_KNOWN)):
        raise ConfigError(
            f"{setting}: Krb5LoginModule has the option {unknown[0][:50]}, which has no meaning here: a node accepts tickets "
            f"with a keytab, and nothing else. Remove it; {', '.join(_KNOWN)} are known."
        )
    for switch in _SWITCHES:
        if options.get(switch) != "true":
            raise ConfigError(f"{setting}: Krb5LoginModule needs {switch}=true; a node accepts tickets with a keytab only.")
    keytab, principal = options.get("keyTab", ""), options.get("principal", "")
    if not keytab or not principal:
        missing = "principal" if keytab else "keyTab"
        raise ConfigError(f"{setting}: Krb5LoginModule needs {missing}, as in: {EXAMPLE}")
    _check_service(principal, options.get("serviceName"), value(SERVICE) or None, setting)
    return GssapiSettings(principal, keytab.removeprefix("FILE:"), tuple(value(RULES)))


def _check_service(principal: str, of_jaas: str | None, of_option: str | None, setting: str) -> None:
    if of_jaas and of_option and of_jaas != of_option:
        raise ConfigError(f"{SERVICE} is {of_option}, and serviceName in {setting} is {of_jaas}. Set one of them.")
    service, own = of_option or of_jaas, principal.partition("@")[0].partition("/")[0]
    if service and service != own:
        raise ConfigError(
            f"{SERVICE} is {service}, but the principal in {setting} is {principal}: clients ask for tickets of the service "
            f"{service}, and the node would accept those of {own}. Both must have one name."
        )
