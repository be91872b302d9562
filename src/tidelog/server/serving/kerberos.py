"""Kerberos on a node: tickets are accepted with the keytab of a listener. Loaded only by a node that offers GSSAPI.

A ticket is decrypted in this process, without a request to the KDC. The library also writes each one into its replay cache, a
file: clients in Java do not ask the server to prove itself, and without the cache a recorded login could be sent again. The
credentials are for Kerberos alone; with those of every mechanism a stranger could make the library ask a KDC (IAKERB).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gssapi import MechType, raw
from gssapi.exceptions import GSSError

from tidelog.client.net.kerberos_library import SealingContext, keytab_credentials, principal_name, reason_of
from tidelog.config.listener_gssapi import GssapiSettings
from tidelog.security.gssapi import ContextRefused, GssapiServer
from tidelog.security.kerberos_names import KerberosNames
from tidelog.server.secret_files import warn_of_readers


class KeytabContext(SealingContext):
    """One ``GssContext`` of the Kerberos library."""

    failure = ContextRefused

    def __init__(self, credentials: Any) -> None:
        super().__init__()
        self._credentials = credentials
        self._name: Any = None
        self.complete = False
        self.lifetime_s: int | None = None

    def accept(self, token: bytes) -> bytes:
        """ContextRefused: the ticket is for another key, too old, sent twice and the like."""
        try:
            step = raw.accept_sec_context(token, acceptor_creds=self._credentials, context=self._context)
        except GSSError as error:
            raise ContextRefused(reason_of(error)) from None
        self._context, self._name, self.lifetime_s = step.context, step.initiator_name, step.lifetime
        self.complete = not step.more_steps
        return bytes(step.token or b"")

    def initiator(self) -> str:
        try:
            shown = raw.display_name(self._name, name_type=False).name
            return str(shown, "utf-8")
        except (GSSError, UnicodeDecodeError) as problem:
            raise ContextRefused(f"the name of the client cannot be read ({type(problem).__name__})") from None


def gssapi_server(settings: GssapiSettings, now_ms: Callable[[], int]) -> Callable[[], GssapiServer]:
    """What begins an exchange on a listener. ConfigError when the keytab has no key of the principal, or a rule is wrong."""
    names = KerberosNames(settings.rules, own_realm())
    credentials = keytab_credentials(settings.principal, settings.keytab)
    warn_of_readers(settings.keytab)
    return lambda: GssapiServer(KeytabContext(credentials), names.user, now_ms)


def own_realm() -> str | None:
    """The default realm of this machine (krb5.conf, or KRB5_CONFIG); None where there is none."""
    try:
        name = raw.canonicalize_name(principal_name("node"), MechType.kerberos)
        return str(raw.display_name(name, name_type=False).name, "utf-8").rpartition("@")[2]
    except GSSError:
        return None
