"""``--console`` of ``tidelog start`` and ``tidelog cluster``: a web console beside the nodes (``side_process``)."""

from __future__ import annotations

from tidelog.cli.side_process import CONSOLE, Say, SideProcess

FLAG = CONSOLE.flag
check, client_address, locked = CONSOLE.check, CONSOLE.client_address, CONSOLE.locked


class ConsoleProcess(SideProcess):
    """A console of the cluster at ``bootstrap``."""

    def __init__(self, bootstrap: str, listen: str, say: Say) -> None:
        super().__init__(CONSOLE, bootstrap, listen, say)
