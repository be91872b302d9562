"""How this node opens a connection to another one: versions, then its own login where the listener has SASL."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from tidelog.client.net.line import Line
from tidelog.client.opening import authentication, versions

if TYPE_CHECKING:
    from tidelog.client.settings import Sasl

NONCE_BYTES = 24


async def open_line(line: Line, login: Sasl | None, address: str, loop: asyncio.AbstractEventLoop) -> None:
    """OSError or ProtocolViolation when the connection ends, NotAuthenticated when the other node refuses the login."""
    await line.converse(versions(line.machine), loop)
    if login is not None:
        await line.converse(authentication(line.machine, login, address, secrets.token_urlsafe(NONCE_BYTES)), loop)
