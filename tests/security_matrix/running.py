"""Runs cells against a node."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import groupby

from tests.security_matrix.case import Cell, World
from tests.security_matrix.connection import ClosedByNode, Connection
from tests.security_matrix.outcome import Canonical
from tests.security_matrix.requests import request
from tests.security_matrix.setup import Administrator, grant, make_tokens, prepare, prepare_cells

CLOSED = "closed"
SILENT = "no answer"
PATIENCE_S = 60.0
SILENCE_S = 3.0
"""How long a row is waited for whose requests Apache Kafka leaves unanswered."""


class Runner:
    """Keeps a connection for each user and listener."""

    def __init__(self, ports: dict[str, int], world: World) -> None:
        self._ports, self._world = ports, world
        self._names = {topic_id: name for name, topic_id in world.topic_ids.items()}
        self._connections: dict[tuple[str, str], Connection] = {}

    def run(self, cells: Iterable[Cell]) -> dict[Cell, str]:
        """The outcome of each. Cells of one row run side by side unless they change the same resource."""
        found: dict[Cell, str] = {}
        for _, row in groupby(cells, key=lambda cell: cell.row):
            listed = list(row)
            for some in [[cell] for cell in listed] if listed[0].case.alone else [listed]:
                found |= self._row(some)
        return found

    def close(self) -> None:
        """End all connections."""
        for connection in self._connections.values():
            connection.close()

    def _row(self, cells: Sequence[Cell]) -> dict[Cell, str]:
        sent = [cell for cell in cells if self._send(cell)]
        outcomes = dict.fromkeys(cells, CLOSED)
        patience = PATIENCE_S if cells[0].case.always_answered else SILENCE_S
        deadline = time.monotonic() + patience
        for cell in sent:
            try:
                answer = self._connections[cell.listener, cell.user].receive(deadline)
            except TimeoutError:
                assert not cell.case.always_answered, f"no answer to {cell.row} of {cell.user}"
                outcomes[cell] = SILENT
                self._forget(cell)
            except ClosedByNode:
                self._forget(cell)
            else:
                outcomes[cell] = Canonical(cell.number, self._names).of(answer)
        return outcomes

    def _send(self, cell: Cell) -> bool:
        message = request(cell.case.api, cell.version, cell.case.fields(self._world, cell.fresh))
        place = cell.listener, cell.user
        if place not in self._connections:
            self._connections[place] = Connection(self._ports[cell.listener], cell.user)
        try:
            self._connections[place].send(cell.case.api, cell.version, message)
        except ClosedByNode:
            self._forget(cell)
            return False
        return True

    def _forget(self, cell: Cell) -> None:
        self._connections.pop((cell.listener, cell.user)).close()


def outcomes(ports: dict[str, int], cells: Sequence[Cell]) -> dict[Cell, str]:
    """Prepare a fresh node and run the cells."""
    administrator = Administrator(ports["plain"])
    world = prepare(administrator)
    make_tokens(ports["broker"])
    prepare_cells(administrator, world, cells)
    grant(administrator, ports)
    runner = Runner(ports, world)
    try:
        return runner.run(cells)
    finally:
        runner.close()
