"""A sample of the security matrix. It needs no Java: Apache Kafka's outcomes are recorded."""

from __future__ import annotations

import random
from pathlib import Path

from tests.interop.nodes import running
from tests.security_matrix.all_cases import all_cells
from tests.security_matrix.case import Cell
from tests.security_matrix.nodes import secured_node
from tests.security_matrix.running import outcomes
from tests.security_matrix.table import key, read
from tidelog.protocol.api_keys import ApiKey

SEED = 15
SAMPLE = 400
SEES_EARLIER_CELLS = {ApiKey.DESCRIBE_PRODUCERS}
"""Its answers show who produced to a topic: other cells, which are not in the sample."""


def sample(cells: list[Cell]) -> list[Cell]:
    """Seeded, in their order, without requests that Apache Kafka does not answer, and those that see earlier cells."""
    rng = random.Random(SEED)
    fit = [cell for cell in cells if cell.case.always_answered and cell.case.api not in SEES_EARLIER_CELLS]
    chosen = {cell.number for cell in rng.sample(fit, SAMPLE)}
    return [cell for cell in cells if cell.number in chosen]


def test_a_sample_of_the_cells_is_decided_as_by_apache_kafka(tmp_path: Path) -> None:
    chosen = sample(all_cells())
    recorded = read(chosen)
    node, ports = secured_node("tidelog", tmp_path / "node", None)
    with running(node):
        found = outcomes(ports, chosen)
        wrong = {key(cell): (recorded.expected(key(cell)), found[cell]) for cell in chosen}
        assert {at: pair for at, pair in wrong.items() if pair[0] != pair[1]} == {}
        node.stop()
