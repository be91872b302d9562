"""A Kerberos library that is made up, for nodes that log in to each other: the real one is compiled with the system's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.unit.client.net.made_up_gssapi import MadeUpError, Raw


class BothSides(Raw):
    """A ticket is ``PRINCIPAL>SERVICE@HOST``."""

    def __init__(self) -> None:
        self.lifetime_s = 3600
        self.refuses: set[str] = set()
        """The services for which there are no tickets."""
        self.asked: list[str] = []

    def import_name(self, name: bytes, kind: Any) -> bytes:
        return name

    def canonicalize_name(self, name: bytes, mech: Any) -> bytes:
        return name + b"@REALM"

    def display_name(self, name: bytes, name_type: bool) -> Any:
        return SimpleNamespace(name=name)

    def acquire_cred_from(self, store: Any, name: bytes, *, mechs: Any, usage: str) -> Any:
        return SimpleNamespace(creds=name, lifetime=self.lifetime_s)

    def init_sec_context(self, name: bytes, credentials: bytes, *, context: Any, mech: Any, flags: Any, input_token: Any) -> Any:
        if input_token is not None:
            assert input_token == b"proof"
            return SimpleNamespace(context=context, token=None, more_steps=False)
        self.asked.append(name.decode())
        if name.decode() in self.refuses:
            raise MadeUpError("no such service")
        return SimpleNamespace(context="context", token=credentials + b">" + name, more_steps=True)

    def accept_sec_context(self, token: bytes, acceptor_creds: Any, context: Any) -> Any:
        principal, _, _ = token.partition(b">")
        return SimpleNamespace(context="c", initiator_name=principal, lifetime=self.lifetime_s, more_steps=False, token=b"proof")
