"""The console's server: uvicorn, which tells the console of its end before it waits for connections."""

from __future__ import annotations

import socket

import uvicorn

from tidelog.console.web.ending import Ending


class Server(uvicorn.Server):
    """Ends the console's streams first: uvicorn would wait for them, and then cut them."""

    def __init__(self, config: uvicorn.Config, ending: Ending) -> None:
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending.begin()
        await super().shutdown(sockets)
