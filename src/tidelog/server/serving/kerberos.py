"""Kerberos on a node: tickets are accepted with the keytab of a listener. Loaded only by a node that offers GSSAPI.

A ticket is decrypted in this process, without a request to the KDC. The library also writes each one into its replay cache, a
file: clients in Java do not ask the server to prove itself, and without the cache a recorded login could be sent again. The
credentials are for Kerberos alone; with those of every mechanism a stranger could make the library ask a KDC (IAKERB).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gssapi import MechType, NameType, raw
from gssapi.exceptions import GSSError

from tidelog.config.listener_gssapi import GssapiSettings
from tidelog.model.errors import ConfigError
from tidelog.security.gssapi import ContextRefused, GssapiServer
from tidelog.security.kerberos_names import KerberosNames
from tidelog.server.secret_files import warn_of_readers

MAX_REASON = 300
_TEXTS = re.compile(r"Major \(\d+\): (?P<major>.*), Minor \(\d+\): (?P<minor>.*)")
_NOTHING = ("", "Success", "Unknown error")


class KeytabContext:
    """One ``GssContext`` of the Kerberos library."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials
        self._context: Any = None
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

    def wrap(self, message: bytes) -> bytes:
        try:
            return bytes(raw.wrap(self._context, message, confidential=False).message)
        except GSSError as error:
            raise ContextRefused(reason_of(error)) from None

    def unwrap(self, message: bytes) -> bytes:
        try:
            return bytes(raw.unwrap(self._context, message).message)
        except GSSError as error:
            raise ContextRefused(reason_of(error)) from None


def gssapi_server(settings: GssapiSettings, now_ms: Callable[[], int]) -> Callable[[], GssapiServer]:
    """What begins an exchange on a listener. ConfigError when the keytab has no key of the principal, or a rule is wrong."""
    names = KerberosNames(settings.rules, own_realm())
    credentials = _credentials(settings)
    warn_of_readers(settings.keytab)
    return lambda: GssapiServer(KeytabContext(credentials), names.user, now_ms)


def own_realm() -> str | None:
    """The default realm of this machine (krb5.conf, or KRB5_CONFIG); None where there is none."""
    try:
        name = raw.canonicalize_name(raw.import_name(b"node", NameType.kerberos_principal), MechType.kerberos)
        return str(raw.display_name(name, name_type=False).name, "utf-8").rpartition("@")[2]
    except GSSError:
        return None


def _credentials(settings: GssapiSettings) -> Any:
    try:
        name = raw.import_name(settings.principal.encode(), NameType.kerberos_principal)
        store = {b"keytab": b"FILE:" + settings.keytab.encode()}
        return raw.acquire_cred_from(store, name, mechs=[MechType.kerberos], usage="accept").creds
    except GSSError as error:
        raise ConfigError(
            f"GSSAPI: the keytab {settings.keytab} cannot be used for {settings.principal}: {reason_of(error)}. "
            f"`klist -k {settings.keytab}` shows what it holds."
        ) from error


def reason_of(error: GSSError) -> str:
    """An error of the library in one line: what Kerberos says, or GSSAPI where Kerberos says nothing."""
    text = " ".join(str(error).split())
    said = _TEXTS.fullmatch(text)
    if said is not None:
        text = said["major"].partition(".")[0] if said["minor"] in _NOTHING else said["minor"]
    return text[:MAX_REASON]
