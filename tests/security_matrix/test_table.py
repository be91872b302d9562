"""What keeps the security matrix whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security_matrix.all_cases import all_cells
from tests.security_matrix.case import served
from tests.security_matrix.outcome import Canonical
from tests.security_matrix.principals import AND, PRINCIPALS, name_of
from tests.security_matrix.table import Table, key, read, write
from tidelog.broker.api import Route
from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

NOT_IN_ONE_REQUEST = {
    ApiKey.SHARE_ACKNOWLEDGE: {"topic-read"},
    ApiKey.STREAMS_GROUP_HEARTBEAT: {"cluster-create", "topic-create"},
}
"""Rights that count only within a session, which another request opens; or whose lack only a status tells, in its text."""
IMPLYING = ("read", "write", "delete", "alter")
"""Operations that give DESCRIBE."""
OPERATIONS = re.compile(r"operations=\{.*?\}")


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


@pytest.mark.parametrize(("listener", "table"), [("broker", BROKER_APIS), ("controller", CONTROLLER_APIS)])
def test_what_a_row_says_that_an_api_needs_decides_its_cells_and_nothing_else(listener: str, table: dict[int, Route]) -> None:
    """Apache Kafka's outcomes change with each permission of a row, given or denied; but for authorized operations, with no
    other."""
    rows: dict[tuple[str, str, int, str], dict[str, str]] = {}
    for (*row, user), outcome in read(all_cells()).apache.items():
        rows.setdefault(tuple(row), {})[user] = outcome  # type: ignore[arg-type]
    for api, route in table.items():
        mine = [users for row, users in rows.items() if row[:2] == (listener, ApiKey(api).name)]
        needed = {name_of(each.resource, each.operation) for each in route.needs.permissions}
        missing = needed - deciding(mine) - NOT_IN_ONE_REQUEST.get(ApiKey(api), set())
        assert not missing, f"{ApiKey(api).name}: no cell shows {missing}"
        described = [right.removesuffix("-describe") for right in needed if right.endswith("-describe")]
        implying = {f"{kind}-{operation}" for kind in described for operation in IMPLYING}
        implying |= {right.replace("describe-configs", "alter-configs") for right in needed}
        unnamed = (
            deciding([{user: OPERATIONS.sub("", each) for user, each in users.items()} for users in mine]) - needed - implying
        )
        assert not unnamed, f"{ApiKey(api).name}: its row does not name {unnamed}"


def deciding(rows: list[dict[str, str]]) -> set[str]:
    """The rights that change an outcome: one alone, one that is denied, one beside others."""
    return {
        right
        for without, having, right in (*each_right_alone(), *each_right_added())
        for users in rows
        if without in users and having in users and users[without] != users[having]
    }


def each_right_alone() -> Iterator[tuple[str, str, str]]:
    """Users that differ in one right: (without it, having it, the right)."""
    for user in PRINCIPALS:
        if user.startswith("but-"):
            right = user.removeprefix("but-")
            yield "none", right, right
            yield user, "all", right


def each_right_added() -> Iterator[tuple[str, str, str]]:
    """Likewise, where several rights are needed."""
    for user in PRINCIPALS:
        rights = user.split(AND)
        for right in rights if len(rights) > 1 else ():
            yield AND.join(each for each in rights if each != right), user, right
