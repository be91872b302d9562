"""The client's side of GSSAPI by the Kerberos library of the system. Loaded only by a client or node that logs in with tickets.

Every function may block: what is in no ticket cache comes from a KDC. Tickets by a keytab are kept in a cache in memory, and the
library fetches new ones after half of their life.
"""

from __future__ import annotations

from typing import Any

from gssapi import MechType, NameType, RequirementFlag, raw
from gssapi.exceptions import GSSError

from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.client.net.kerberos_library import SealingContext, UnusableKeytab, keytab_credentials, principal_name, reason_of
from tidelog.model.errors import ProtocolViolation

KDC_UNREACHABLE = -1765328228 & 0xFFFFFFFF
"""KRB5_KDC_UNREACH of MIT Kerberos."""
_OLD_KEY = ". The key in the keytab is not the one that the KDC has"
_ADVICE = {
    -1765328377 & 0xFFFFFFFF: ". A broker's principal holds the host name that clients connect to",
    -1765328360 & 0xFFFFFFFF: _OLD_KEY,
    -1765328353 & 0xFFFFFFFF: _OLD_KEY,
}
"""KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN, KRB5KDC_ERR_PREAUTH_FAILED and KRB5KRB_AP_ERR_BAD_INTEGRITY."""
_FLAGS = (RequirementFlag.mutual_authentication, RequirementFlag.integrity)
"""The broker has to prove that it is the one that the ticket is for; messages of the login have checksums."""


class TicketContext(SealingContext):
    """One ``Initiator`` of the Kerberos library."""

    failure = ProtocolViolation

    def __init__(self, service: Any, credentials: Any) -> None:
        """GSSError: the ticket for the service cannot be had."""
        super().__init__()
        self._service, self._credentials = service, credentials
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


def ticket_context(kerberos: Kerberos, host: str, memory: str) -> TicketContext:
    """The begin of a login on ``host``, which is the name that its principal holds. NoTicket.

    ``memory``: the name of the cache that keeps tickets by the keytab.
    """
    target = f"{kerberos.service}@{host}"
    try:
        service = raw.import_name(target.encode(), NameType.hostbased_service)
        return TicketContext(service, _credentials(kerberos, memory))
    except GSSError as error:
        if kerberos.keytab is not None:
            try:
                keytab_credentials(kerberos.principal, kerberos.keytab)
            except UnusableKeytab as unusable:
                # The library itself would say that there is no ticket cache.
                raise NoTicket(f"no Kerberos ticket for {target}: {unusable.problem}") from error
        code = error.min_code & 0xFFFFFFFF
        said = f"no Kerberos ticket for {target}: {reason_of(error)}{_ADVICE.get(code, '')}"
        raise NoTicket(said, unreachable=code == KDC_UNREACHABLE) from error


def _credentials(kerberos: Kerberos, memory: str) -> Any:
    name = principal_name(kerberos.principal) if kerberos.principal else None
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
