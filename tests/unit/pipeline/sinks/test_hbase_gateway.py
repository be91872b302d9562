"""HBase's REST server as it may be: down, busy, without the table, with a family missing, asking who is there."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from tests.unit.pipeline.http_server import HttpServer, QuietHandler
from tidelog.model.errors import ConfigError
from tidelog.pipeline.sinks import hbase_gateway
from tidelog.pipeline.sinks.base import SinkError
from tidelog.pipeline.sinks.hbase_gateway import Address, Gateway

Answer = tuple[int, bytes]


class Server(HttpServer):
    """Answers by method and path, in the form of HBase 2.6's; ``asked`` has what came."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[Answer]] = {}
        self.asked: list[tuple[str, str, bytes, str]] = []
        outer = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.asked.append((self.command, self.path, body, self.headers.get("Authorization", "")))
                left = outer.answers.get((self.command, self.path), [(404, b"Not found\r\n")])
                status, said = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_PUT = answer

        super().__init__(Handler)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def gateway(*urls: str, patience_s: float = 0, user: str = "") -> Gateway:
    return Gateway(Address(urls, user, "secret" if user else ""), patience_s=patience_s)


def test_families_of_a_table_and_of_one_that_is_not_there(server: Server) -> None:
    schema = json.dumps({"name": "t", "ColumnSchema": [{"name": "d", "VERSIONS": "1"}, {"name": "e"}]}).encode()
    server.answers["GET", "/ns:t/schema"] = [(200, schema)]
    with gateway(server.url) as asked:
        assert asked.families("ns:t") == ("d", "e")
        assert asked.families("u") is None


def test_a_cell_is_read_and_one_that_is_not_there_is_none(server: Server) -> None:
    row = {"Row": [{"key": "", "Cell": [{"column": "", "timestamp": 1, "$": base64.b64encode(b"x").decode()}]}]}
    server.answers["GET", "/t/tidelog%3Ap%3As/b:last"] = [(200, json.dumps(row).encode())]
    with gateway(server.url) as asked:
        assert asked.cell("t", "tidelog:p:s", "b:last") == b"x"
        assert asked.cell("t", "other", "b:last") is None


def test_a_server_that_is_busy_is_asked_again_and_then_the_next_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hbase_gateway, "_PAUSE_S", 0.0)
    server.answers["PUT", "/t/rows"] = [(503, b"Unavailable\r\n"), (200, b"")]
    with gateway("http://127.0.0.1:1", server.url, patience_s=60, user="etl") as asked:
        asked.put("t", b"{}")
    assert [body for _, _, body, _ in server.asked] == [b"{}", b"{}"]
    assert server.asked[0][3] == "Basic " + base64.b64encode(b"etl:secret").decode()


def test_a_server_that_is_not_there_is_told_with_what_to_do() -> None:
    with gateway("http://127.0.0.1:1") as asked, pytest.raises(SinkError, match=r"ConnectionRefused.*hbase rest start"):
        asked.version()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (404, b"Not found\r\nNoSuchColumnFamilyException: family x does not exist"),
            "family x does not exist. Add the family in",
        ),
        ((404, b"Not found\r\nTableNotFoundException: t"), "deleted while it was written to"),
        ((403, b"Forbidden\r\nAccessDeniedException: etl"), "AccessDeniedException: etl. Give the user and password"),
        ((500, b""), "answered 500 to PUT /t/rows: no further message"),
    ],
)
def test_what_hbase_refuses_is_told_with_what_to_do(server: Server, answer: Answer, said: str) -> None:
    server.answers["PUT", "/t/rows"] = [answer]
    with gateway(server.url) as asked, pytest.raises(SinkError, match=said):
        asked.put("t", b"{}")


def test_a_table_is_made_with_its_families(server: Server) -> None:
    server.answers["PUT", "/t/schema"] = [(201, b"")]
    with gateway(server.url) as asked:
        asked.create("t", ["d", "e"])
    assert [family["name"] for family in json.loads(server.asked[0][2])["ColumnSchema"]] == ["d", "e"]


def test_an_address_that_is_none_is_told() -> None:
    assert Address.read("http://a:1/, https://b", "", "").urls == ("http://a:1", "https://b")
    for wrong in ("gateway:8080", "", " , ", "http://gateway:80a", "http://[::1"):
        with pytest.raises(ConfigError, match="like http://gateway:8080"):
            Address.read(wrong, "", "")


def test_a_user_in_the_address_is_refused_and_the_password_not_told() -> None:
    with pytest.raises(ConfigError, match="say user and password beside it") as told:
        Address.read("http://etl:secret@gateway:8080", "", "")
    assert "secret" not in str(told.value)
