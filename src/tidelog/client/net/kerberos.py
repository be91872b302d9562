"""The client's side of GSSAPI by the Kerberos library of the system. Loaded only by a client or node that logs in with tickets.

Every function may block: what is in no ticket cache comes from a KDC. Tickets by a keytab are kept in a cache in memory, and the
library fetches new ones after half of their life.
"""

from __future__ import annotations

from typing import Any

from gssapi import MechType, NameType, RequirementFlag, raw
from gssapi.exceptions import GSSError

from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.model.errors import ConfigError, ProtocolViolation

MAX_REASON = 300
KDC_UNREACHABLE = -1765328228 & 0xFFFFFFFF
"""KRB5_KDC_UNREACH of MIT Kerberos."""
_OLD_KEY = ". The key in the keytab is not the one that the KDC has"
_ADVICE = {
    -1765328377 & 0xFFFFFFFF: ". A broker's principal holds the host name that clients connect to",
    -1765328360 & 0xFFFFFFFF: _OLD_KEY,
    -1765328353 & 0xFFFFFFFF: _OLD_KEY,
}
"""KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN, KRB5KDC_ERR_PREAUTH_FAILED and KRB5KRB_AP_ERR_BAD_INTEGRITY."""
_SILENT = ("", "Success", "Unknown error")
_FLAGS = (RequirementFlag.mutual_authentication, RequirementFlag.integrity)
"""The broker has to prove that it is the one that the ticket is for; messages of the login have checksums."""


class TicketContext:
    """One ``Initiator`` of the Kerberos library."""

    def __init__(self, service: Any, credentials: Any) -> None:
        """GSSError: the ticket for the service cannot be had."""
        self._service, self._credentials = service, credentials
        self._context: Any = None
        self.complete = False
        self.first = self._next(None)

    def _next(self, token: bytes | None) -> bytes:
        made = raw.init_sec_context(
            self._service,
            self._credentials,
            context=self._context,
            mech=MechType.kerberos,
            flags=_FLAGS,
            input_token=token,
        )
        self._context, self.complete = made.context, not made.more_steps
        return bytes(made.token or b"")

    def step(self, token: bytes) -> bytes:
        try:
            return self._next(token)
        except GSSError as error:
            raise ProtocolViolation(f"the broker does not prove who it is: {reason_of(error)}") from None

    def wrap(self, message: bytes) -> bytes:
        try:
            return bytes(raw.wrap(self._context, message, confidential=False).message)
        except GSSError as error:
            raise ProtocolViolation(reason_of(error)) from None

    def unwrap(self, message: bytes) -> bytes:
        try:
            return bytes(raw.unwrap(self._context, message).message)
        except GSSError as error:
            raise ProtocolViolation(reason_of(error)) from None


def ticket_context(kerberos: Kerberos, host: str, memory: str) -> TicketContext:
    """The begin of a login on ``host``, which is the name that its principal holds. NoTicket.

    ``memory``: the name of the cache that keeps tickets by the keytab.
    """
    target = f"{kerberos.service}@{host}"
    try:
        service = raw.import_name(target.encode(), NameType.hostbased_service)
        return TicketContext(service, _credentials(kerberos, memory))
    except GSSError as error:
        code = error.min_code & 0xFFFFFFFF
        if kerberos.keytab is not None and (problem := _keytab_problem(kerberos.principal, kerberos.keytab)) is not None:
            # The library itself would say that there is no ticket cache.
            raise NoTicket(f"no Kerberos ticket for {target}: {problem}") from error
        said = f"no Kerberos ticket for {target}: {reason_of(error)}{_ADVICE.get(code, '')}"
        raise NoTicket(said, unreachable=code == KDC_UNREACHABLE) from error


def check_keytab(principal: str, keytab: str) -> None:
    """ConfigError unless the keytab has a key of the principal; no KDC is asked."""
    problem = _keytab_problem(principal, keytab)
    if problem is not None:
        raise ConfigError(f"GSSAPI: {problem}")


def _keytab_problem(principal: str, keytab: str) -> str | None:
    try:
        name = raw.import_name(principal.encode(), NameType.kerberos_principal)
        raw.acquire_cred_from({b"keytab": b"FILE:" + keytab.encode()}, name, mechs=[MechType.kerberos], usage="accept")
    except GSSError as error:
        return f"the keytab {keytab} cannot be used for {principal}: {reason_of(error)}. `klist -k {keytab}` shows what it holds."
    return None


def _credentials(kerberos: Kerberos, memory: str) -> Any:
    name = raw.import_name(kerberos.principal.encode(), NameType.kerberos_principal) if kerberos.principal else None
    if kerberos.use_cache:
        cache = None if kerberos.cache is None else {b"ccache": kerberos.cache.encode()}
        try:
            found = raw.acquire_cred_from(cache, name, mechs=[MechType.kerberos], usage="initiate")
        except GSSError:
            if kerberos.keytab is None:
                raise
        else:
            if kerberos.keytab is None or found.lifetime is None or found.lifetime > 0:
                return found.creds
    assert kerberos.keytab is not None
    store = {b"client_keytab": b"FILE:" + kerberos.keytab.encode(), b"ccache": b"MEMORY:" + memory.encode()}
    return raw.acquire_cred_from(store, name, mechs=[MechType.kerberos], usage="initiate").creds


def reason_of(error: GSSError) -> str:
    """An error of the library in one line: what Kerberos says, or GSSAPI where Kerberos says nothing."""
    for code, is_major in ((error.min_code, False), (error.maj_code, True)):
        texts = [str(each) for each in error.get_all_statuses(code, is_major)]
        said = " ".join(" ".join(texts).split()).rstrip(".")
        if said not in _SILENT:
            return said[:MAX_REASON]
    return type(error).__name__
