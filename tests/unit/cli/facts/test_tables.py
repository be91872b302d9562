"""Pages of facts as rows of text."""

from __future__ import annotations

import pytest

from tests.unit.cli.facts.pages import page
from tidelog.cli.facts.tables import HIDDEN, SORTS, Table, duration, fitting, milliseconds, rate, size, tables


def by_title(pages: list[dict[str, object]], sort: str = "time", most: int = 10) -> dict[str, Table]:
    return {table.title: table for table in tables(pages, sort, most)}


def row(table: Table, at: int = 0) -> dict[str, str]:
    return dict(zip((column.title for column in table.columns), table.rows[at], strict=True))


def test_one_node() -> None:
    found = by_title([page()])
    assert row(found["Nodes"]) == {
        "node": "1", "roles": "broker+controller", "up": "1 h 2 min", "loop": "25.0 %", "memory": "120 MiB", "files": "42",
        "connections": "7", "parked": "4", "groups": "2", "open txns": "1", "partitions": "3", "under repl.": "2",
        "version": "1.0",
    }  # fmt: skip
    apis = found["The loop's time by API"]
    assert [row(apis, at) for at in (0, 1)] == [
        {"API": "Produce", "loop": "20.0 %", "requests/s": "100"},
        {"API": "logins, refused", "loop": "1.0 %", "requests/s": "0"},
    ]
    assert row(found["Busiest clients"]) == {
        "client id": "writer", "principal": "User:alice", "host": "10.0.0.1", "loop": "15.0 %", "requests/s": "80",
        "in/s": "1.0 MiB", "out/s": size(1000),
    }  # fmt: skip
    assert row(found["Busiest topics"])["records/s"] == "10"
    assert row(found["Times of requests"])["total"] == "2.5"


@pytest.mark.parametrize(("sort", "first"), [("time", "writer"), ("requests", "reader"), ("in", "writer"), ("out", "reader")])
def test_clients_are_sorted_by_what_is_asked_for(sort: str, first: str) -> None:
    assert row(by_title([page()], sort)["Busiest clients"])["client id"] == first
    assert sort in SORTS


def test_rows_of_several_nodes_say_which_and_are_sorted_together() -> None:
    busier = page(2, loop={"seconds": 5.0, "busy": 0.9, "apis": [{"api": "Fetch", "requests": 5, "share": 0.8}]})
    found = by_title([page(1), busier], most=2)
    assert [each[:2] for each in found["The loop's time by API"].rows] == [["2", "Fetch"], ["1", "Produce"]]
    assert [each[0] for each in found["Nodes"].rows] == ["1", "2"]


def test_what_a_page_does_not_have_is_a_dash() -> None:
    controller = page(loop=None, clients=None, process=None, groups=None)
    for section in ("topics", "partitions", "transactions"):
        del controller[section]
    found = by_title([controller])
    assert row(found["Nodes"])["memory"] == row(found["Nodes"])["partitions"] == row(found["Nodes"])["groups"] == "-"
    assert not found["Busiest topics"].rows


def test_names_that_are_hidden_or_hostile() -> None:
    client = {
        "client_id": None,
        "principal": "User:\x1b[2J",
        "host": "h",
        "share": 0.1,
        "requests": 1,
        "bytes_in": 1,
        "bytes_out": 1,
    }
    found = row(by_title([page(clients={"seconds": 1.0, "busiest": [client]})])["Busiest clients"])
    assert found["client id"] == HIDDEN
    assert "\x1b" not in found["principal"]


def test_a_narrow_terminal_loses_the_least_columns_and_never_the_first() -> None:
    (nodes, *_, phases) = tables([page()], "time", 5)
    assert fitting(nodes, 500) == Table(nodes.title, list(nodes.columns), [list(each) for each in nodes.rows])
    narrow = fitting(nodes, 60)
    titles = [column.title for column in narrow.columns]
    assert {"node", "loop", "connections"} <= set(titles)
    assert "version" not in titles
    assert all(len(each) == len(titles) for each in narrow.rows)
    assert [column.title for column in fitting(phases, 10).columns] == ["p99 in ms", "total", "local", "remote"]


def test_numbers_are_short() -> None:
    assert [rate(each, 10) for each in (0, 0.3, 4, 123, 20000)] == ["0", "<0.1", "0.4", "12", "2,000"]
    assert [size(each) for each in (None, 5, 999, 2048, 5 << 30, 3 << 50)] == [
        "-",
        "5 B",
        "999 B",
        "2.0 KiB",
        "5.0 GiB",
        "3072.0 TiB",
    ]
    assert [milliseconds(each) for each in (None, 0.123, 4.56, 123.4)] == ["-", "0.12", "4.6", "123"]
    assert [duration(each) for each in (None, 5, 65, 3725, 90061)] == ["-", "5 s", "1 min 5 s", "1 h 2 min", "1 d 1 h"]
