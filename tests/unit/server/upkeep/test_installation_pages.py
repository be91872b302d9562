from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tidelog.security.principal import KafkaPrincipal
from tidelog.server.installation import Place
from tidelog.server.upkeep.http import Answer, HttpServer, Page, Reader
from tidelog.server.upkeep.installation_pages import InstallationPages, own_socket

READER = Reader(KafkaPrincipal("User", "anna"), "10.0.0.1")
METRICS = b"# HELP a A\n# TYPE a gauge\na %d\n"


def pages_of(node_id: int, status: str) -> dict[str, Page]:
    """A process's own pages."""

    async def metrics(reader: Reader) -> Answer:
        return Answer(200, METRICS % node_id) if status == "ok" else Answer(503, b"starting\n")

    async def health(reader: Reader) -> Answer:
        return Answer(503 if status == "failed" else 200, json.dumps({"status": status, "node_id": node_id}).encode())

    async def live(reader: Reader) -> Answer:
        return Answer(200, b"live\n")

    async def ready(reader: Reader) -> Answer:
        return Answer(200, b"ready\n") if status == "ok" else Answer(503, f"it is {status}\n".encode())

    async def names(reader: Reader) -> Answer:
        return Answer(200, b'{"node":{"id":%d},"names":true}\n' % node_id) if status == "ok" else Answer(503, b"starting\n")

    async def numbers(reader: Reader) -> Answer:
        return Answer(200, b'{"node":{"id":%d},"names":false}\n' % node_id)

    async def share_record(reader: Reader) -> Answer:
        return Answer(403, b"no\n") if "group=secret" in reader.query else Answer(404, b"only a controller\n")

    async def trusted(reader: Reader) -> Answer:
        asked = json.dumps([node_id, reader.query]).encode()
        return Answer(200, asked + b"\n") if status == "ok" else Answer(404, b"only a controller\n")

    return {
        "/facts/share-record": share_record,
        "/facts/share-record/trusted": trusted,
        "/metrics": metrics,
        "/healthz": health,
        "/livez": live,
        "/readyz": ready,
        "/facts/names": names,
        "/facts/numbers": numbers,
    }


async def in_line(job: Callable[[], bytes]) -> bytes:
    return job()


def asked(
    folder: Path,
    states: dict[int, str | None],
    path: str,
    sees_names: Callable[[Reader], bool] = lambda reader: True,
    query: str = "",
) -> Answer:
    """The answer of node 1 about all; a state None: there is no such process."""

    async def run() -> Answer:
        place = Place(1, True, -1, {}, None, str(folder), tuple(states))
        servers = []
        for node_id, status in states.items():
            if node_id != 1 and status is not None:
                servers.append(HttpServer(pages_of(node_id, status)))
                await servers[-1].start_local(own_socket(place, node_id))
        try:
            return await InstallationPages(place, pages_of(1, states[1] or ""), in_line, sees_names).pages()[path](
                READER._replace(query=query)
            )
        finally:
            for each in servers:
                await each.close()

    return asyncio.run(run())


def test_the_metrics_of_all_processes_are_on_one_page(tmp_path: Path) -> None:
    answer = asked(tmp_path, {1: "ok", 2: "ok", 3: None, 4: "starting"}, "/metrics")
    assert answer.status == 200
    lines = answer.body.decode().splitlines()
    assert 'a{node="1"} 1' in lines and 'a{node="2"} 2' in lines
    assert [line for line in lines if line.startswith("tidelog_process_up")] == [
        'tidelog_process_up{node="1"} 1',
        'tidelog_process_up{node="2"} 1',
        'tidelog_process_up{node="3"} 0',
        'tidelog_process_up{node="4"} 0',
    ]


@pytest.mark.parametrize(
    ("states", "code", "status"),
    [
        ({1: "ok", 2: "ok"}, 200, "ok"),
        ({1: "ok", 2: None}, 200, "degraded"),
        ({1: "failed", 2: "ok"}, 200, "degraded"),
        ({1: "starting", 2: "starting"}, 200, "starting"),
        ({1: "starting", 2: None}, 200, "starting"),
        ({1: "failed", 2: None}, 503, "failed"),
    ],
)
def test_the_health_of_all_is_that_of_the_best_and_the_worst(
    tmp_path: Path, states: dict[int, str | None], code: int, status: str
) -> None:
    answer = asked(tmp_path, states, "/healthz")
    body = json.loads(answer.body)
    assert (answer.status, body["status"]) == (code, status)
    assert [each["status"] for each in body["nodes"]] == [each or "down" for each in states.values()]


def test_an_installation_is_ready_while_one_process_is(tmp_path: Path) -> None:
    assert asked(tmp_path, {1: "starting", 2: "ok", 3: None}, "/readyz") == Answer(
        200, b"ready\nnode 1: it is starting\nnode 3: down\n"
    )
    assert asked(tmp_path, {1: "starting", 2: None}, "/readyz").status == 503
    assert asked(tmp_path, {1: "failed", 2: None}, "/livez") == Answer(200, b"live\n")


def test_one_ready_process_answers_a_probe_although_another_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe of Kubernetes waits a second by default, and would take the whole installation out of service."""
    monkeypatch.setattr("tidelog.server.upkeep.installation_pages.ANSWER_S", 3600)

    async def run() -> Answer:
        place = Place(1, True, -1, {}, None, str(tmp_path), (1, 2))
        with socket.socket(socket.AF_UNIX) as stopped:
            stopped.bind(own_socket(place, 2))
            stopped.listen()
            pages = InstallationPages(place, pages_of(1, "ok"), in_line, lambda reader: True).pages()
            async with asyncio.timeout(20):
                return await pages["/readyz"](READER)

    assert asyncio.run(run()) == Answer(200, b"ready\nnode 2: down\n")


def test_an_answer_that_is_cut_off_counts_as_none(tmp_path: Path) -> None:
    async def run() -> Answer:
        place = Place(1, True, -1, {}, None, str(tmp_path), (1, 2))

        async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n# HELP")
            writer.close()

        server = await asyncio.start_unix_server(cut, own_socket(place, 2))
        try:
            return await InstallationPages(place, pages_of(1, "ok"), in_line, lambda reader: True).pages()["/metrics"](READER)
        finally:
            server.close()

    assert b'tidelog_process_up{node="2"} 0' in asyncio.run(run()).body


def test_a_socket_that_a_former_process_left_is_replaced_and_is_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "1.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))

    async def run() -> None:
        server = HttpServer(pages_of(1, "ok"))
        await server.start_local(str(path))
        assert path.stat().st_mode & 0o777 == 0o600
        await server.close()

    asyncio.run(run())


def test_the_facts_of_all_processes_are_in_one_list_and_missing_ones_are_named(tmp_path: Path) -> None:
    answer = asked(tmp_path, {1: "ok", 2: "ok", 3: None, 4: "starting"}, "/facts")
    assert answer.status == 200
    assert json.loads(answer.body) == {
        "schema": 1,
        "missing": [3, 4],
        "nodes": [{"node": {"id": 1}, "names": True}, {"node": {"id": 2}, "names": True}],
    }


def test_the_process_that_is_asked_decides_whether_its_reader_sees_names(tmp_path: Path) -> None:
    readers: list[Reader] = []

    def sees(reader: Reader) -> bool:
        readers.append(reader)
        return False

    found = json.loads(asked(tmp_path, {1: "ok", 2: "ok"}, "/facts", sees).body)["nodes"]
    assert [each["names"] for each in found] == [False, False]
    assert readers == [READER]


def test_the_record_of_a_share_group_is_asked_of_all_processes_if_the_reader_may(tmp_path: Path) -> None:
    states: dict[int, str | None] = {1: "ok", 2: "ok", 3: None, 4: "controller"}
    answer = asked(tmp_path, states, "/facts/share-record", query="group=g&offset=1")
    assert json.loads(answer.body) == {"schema": 1, "nodes": [[1, "group=g&offset=1"], [2, "group=g&offset=1"]]}
    assert asked(tmp_path, states, "/facts/share-record", query="group=secret").status == 403
