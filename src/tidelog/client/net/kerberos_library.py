"""The Kerberos library of the system, as both sides of a login use it. Loaded only where tickets are fetched or accepted."""

from __future__ import annotations

from typing import Any, ClassVar

from gssapi import MechType, NameType, raw
from gssapi.exceptions import GSSError

from tidelog.model.errors import ConfigError

MAX_REASON = 300
_SILENT = ("", "Success", "Unknown error")


class UnusableKeytab(ConfigError):
    """``problem``: the text without the name of the mechanism."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"GSSAPI: {problem}")
        self.problem = problem


class SealingContext:
    """A security context, whose messages have checksums and are not encrypted."""

    failure: ClassVar[type[Exception]]
    """What a message that cannot be sealed or opened raises, with the reason."""

    def __init__(self) -> None:
        self._context: Any = None

    def wrap(self, message: bytes) -> bytes:
        try:
            return bytes(raw.wrap(self._context, message, confidential=False).message)
        except GSSError as error:
            raise self.failure(reason_of(error)) from None

    def unwrap(self, message: bytes) -> bytes:
        try:
            return bytes(raw.unwrap(self._context, message).message)
        except GSSError as error:
            raise self.failure(reason_of(error)) from None


def principal_name(principal: str) -> Any:
    """The library's form of a principal such as ``ann@REALM``."""
    return raw.import_name(principal.encode(), NameType.kerberos_principal)


def keytab_credentials(principal: str, keytab: str) -> Any:
    """What accepts tickets for the principal; no KDC is asked. UnusableKeytab when the keytab has no key of it."""
    try:
        store = {b"keytab": b"FILE:" + keytab.encode()}
        return raw.acquire_cred_from(store, principal_name(principal), mechs=[MechType.kerberos], usage="accept").creds
    except GSSError as error:
        raise UnusableKeytab(
            f"the keytab {keytab} cannot be used for {principal}: {reason_of(error)}. `klist -k {keytab}` shows what it holds."
        ) from error


def reason_of(error: GSSError) -> str:
    """An error of the library in one line: what Kerberos says, or the first sentence of GSSAPI where Kerberos says nothing."""
    for code, is_major in ((error.min_code, False), (error.maj_code, True)):
        said = " ".join(" ".join(map(str, error.get_all_statuses(code, is_major))).split())
        said = said.partition(".")[0] if is_major else said.rstrip(".")
        if said not in _SILENT:
            return said[:MAX_REASON]
    return type(error).__name__
