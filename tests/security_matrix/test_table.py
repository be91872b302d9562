"""What keeps the security matrix whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security_matrix.all_cases import all_cells
from tests.security_matrix.case import served
from tests.security_matrix.outcome import Canonical
from tests.security_matrix.table import Table, key, read, write
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_each_api_has_cells_at_its_lowest_and_its_highest_version(listener: str) -> None:
    found: dict[int, set[int]] = {}
    for cell in all_cells():
        if cell.listener == listener:
            found.setdefault(cell.case.api, set()).add(cell.version)
    for api, (low, high) in served(listener).items():
        assert {low, high} <= found.get(api, set()), f"{ApiKey(api).name} on a {listener}"


def test_the_table_has_all_cells() -> None:
    cells = all_cells()
    recorded = read(cells)
    missing = [key(cell) for cell in cells if key(cell) not in recorded.apache]
    assert not missing, f"{len(missing)} cells are not recorded (make security ARGS=--write): {missing[:3]}"
    assert len(cells) > 5000


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    cells = [cell for cell in all_cells() if cell.case.api == ApiKey.DELETE_GROUPS]
    outcomes = {key(cell): f"results[{cell.user if cell.number % 3 else 'ok : x'}]" for cell in cells}
    table = Table(outcomes, {key(cell): "another" for cell in cells[::7]})
    write(table, tmp_path / "table.txt")
    assert read(cells, tmp_path / "table.txt") == table


def test_an_outcome_has_the_names_of_its_own_cell_only() -> None:
    answer = MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=29, name="open-fresh-7", topic_authorized_operations=(1 << 3) + (1 << 8)),
            MetadataResponseTopic(error_code=0, name="open-fresh-77"),
            MetadataResponseTopic(error_code=3, name="a", topic_id=b"i" * 16),
        ]
    )
    outcome = Canonical(7, {b"i" * 16: "of-a"}).of(answer)
    assert outcome == (
        "brokers=none topics[TOPIC_AUTHORIZATION_FAILED name=open-fresh partitions[] operations={3,8}, "
        "UNKNOWN_TOPIC_OR_PARTITION name=a id=of-a partitions[]] ok"
    )
    shuffled = DeleteTopicsResponse(responses=[DeletableTopicResult("b"), DeletableTopicResult("a", error_code=29)])
    assert Canonical(1, {}).of(shuffled) == "responses[name=a TOPIC_AUTHORIZATION_FAILED, name=b ok]"
