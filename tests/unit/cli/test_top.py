"""The command: text, JSON, several nodes, a pipe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.unit.cli.facts.pages import page
from tests.unit.cli.facts.serving import serving
from tests.unit.cli.running_node import node_in_a_thread
from tidelog.cli import top
from tidelog.cli.main import main


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["top", *arguments], env={"COLUMNS": "120", **environment})


@pytest.fixture
def node() -> Iterator[str]:
    with serving(lambda _, __: (200, json.dumps(page()).encode())) as where:
        yield where


def test_once_is_one_page_as_text_without_colours(node: str) -> None:
    result = run("--endpoint", node, "--once")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    for text in (
        "Nodes",
        "The loop's time by API",
        "Produce",
        "20.0 %",
        "Busiest clients",
        "writer",
        "orders",
        "Times of requests",
    ):
        assert text in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_a_narrow_terminal_gets_no_broken_lines(node: str) -> None:
    result = run("--endpoint", node, "--once", COLUMNS="48")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 48
    assert any("writer" in line and "15.0 %" in line for line in lines)
    assert "User:alice" not in result.stdout


def test_json_is_a_line_for_each_node_with_all_facts(node: str) -> None:
    result = run("--endpoint", node, "--endpoint", node, "--once", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [page(), page()]


def test_a_node_that_is_away_is_named_and_the_others_are_shown(node: str) -> None:
    result = run("--endpoint", node, "--endpoint", "localhost:1", "--once")
    assert result.exit_code == 0
    assert "writer" in result.stdout
    assert "http://localhost:1/facts cannot be read" in result.stderr


def test_no_node_at_all_is_an_error() -> None:
    result = run("--endpoint", "localhost:1", "--once")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("tidelog top: http://localhost:1/facts cannot be read: ")


def test_endpoints_come_from_the_environment_too(node: str) -> None:
    assert run("--once", TIDELOG_ENDPOINT=f"{node} {node}").stdout.count("broker+controller") == 2


def test_numbers_of_a_long_time_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "FIRST_WAIT_S", 0)
    pages = iter([page(loop={"seconds": 7200.0, "busy": 0.1, "apis": []}), page(2)])
    with serving(lambda _, __: (200, json.dumps(next(pages)).encode())) as where:
        assert json.loads(run("--endpoint", where, "--once", "--json").stdout)["node"]["id"] == 2


def test_a_name_is_not_read_as_markup() -> None:
    client = {
        "client_id": "[red]x[/red]",
        "principal": "p",
        "host": "h",
        "share": 0.1,
        "requests": 1,
        "bytes_in": 1,
        "bytes_out": 1,
    }
    console = Console(width=120, highlight=False)
    with console.capture() as captured:
        for part in top.parts([page(clients={"seconds": 1.0, "busiest": [client]})], "time", 10, 120):
            console.print(part)
    assert "[red]x[/red]" in captured.get()


def test_a_real_node(tmp_path: Path) -> None:
    with node_in_a_thread(tmp_path, **{"tidelog.http.listener": "127.0.0.1:0"}) as running:
        assert running.monitoring.address is not None
        result = run("--endpoint", f"127.0.0.1:{running.monitoring.address[1]}", "--once")
        assert result.exit_code == 0, result.output
        assert "broker+controller" in result.stdout
