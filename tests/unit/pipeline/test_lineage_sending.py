"""Events on their way to an endpoint that takes them, refuses them, hangs or is not there: the run never waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.pipeline.http_server import HttpServer, QuietHandler
from tidelog.model.errors import ConfigError
from tidelog.pipeline import lineage_sending
from tidelog.pipeline.lineage_sending import Sender, settings_of
from tidelog.pipeline.model import Lineage


class Endpoint(HttpServer):
    """Takes events; ``statuses`` are its next answers, then 201."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, Any]] = []
        self.statuses: list[int] = []
        self.arrived = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        outer = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.go_on.wait(10)
                status = outer.statuses.pop(0) if outer.statuses else 201
                if status == 201:
                    outer.taken.append((self.path, self.headers.get("Authorization", ""), body))
                    outer.arrived.set()
                self.send_response(status)
                self.end_headers()

        super().__init__(Handler)

    def close(self) -> None:
        self.go_on.set()
        super().close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


def test_events_arrive_in_their_order_and_the_end_waits_for_them(endpoint: Endpoint) -> None:
    lines: list[str] = []
    sender = Sender(Lineage(endpoint.url + "/api/v1/lineage", api_key="key"), lines.append)
    for number in range(3):
        sender.send({"number": number})
    sender.close()
    assert endpoint.taken == [("/api/v1/lineage", "Bearer key", {"number": number}) for number in range(3)] and not lines


def test_an_event_is_tried_again(endpoint: Endpoint) -> None:
    endpoint.statuses = [503, 503]
    lines: list[str] = []
    sender = Sender(Lineage(endpoint.url), lines.append, pauses_s=(0.0, 0.0))
    sender.send({"number": 0})
    assert endpoint.arrived.wait(30)
    sender.close()
    assert [body for _, _, body in endpoint.taken] == [{"number": 0}] and not lines


def test_an_endpoint_that_is_not_there_is_told_once_and_costs_events_only() -> None:
    lines: list[str] = []
    sender = Sender(Lineage("http://127.0.0.1:1"), lines.append, pauses_s=())
    for number in range(5):
        sender.send({"number": number})
    sender.close()
    assert len(lines) == 1 and "events do not reach http://127.0.0.1:1 (URLError" in lines[0]


def test_an_endpoint_that_hangs_holds_up_nobody(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_sending, "WAITING", 2)
    endpoint.go_on.clear()
    lines: list[str] = []
    sender = Sender(Lineage(endpoint.url), lines.append)
    for number in range(10):
        sender.send({"number": number})
    sender.close(patience_s=0.01)
    assert len(lines) == 1 and "too many events wait" in lines[0]


@pytest.mark.parametrize("key", ["se\ncret", "secrét\u4e16"])
def test_a_key_that_cannot_be_sent_is_not_told(key: str) -> None:
    lines: list[str] = []
    sender = Sender(Lineage("http://127.0.0.1:1", api_key=key), lines.append, pauses_s=())
    sender.send({"a": 1})
    sender.close()
    assert len(lines) == 1 and "cannot have" in lines[0] and "cr" not in lines[0].replace("characters", "")


def test_a_file_and_the_screen_take_a_line_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sender = Sender(Lineage(file=str(tmp_path / "events"), console=True), print)
    sender.send({"a": 1})
    sender.send({"b": 2})
    sender.close()
    assert (tmp_path / "events").read_text() == '{"a": 1}\n{"b": 2}\n' == capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "environment", "found"),
    [
        (None, {}, None),
        (None, {"OPENLINEAGE_URL": "http://m:5000/"}, Lineage("http://m:5000/api/v1/lineage")),
        (
            None,
            {
                "OPENLINEAGE_URL": "http://m",
                "OPENLINEAGE_ENDPOINT": "/e",
                "OPENLINEAGE_API_KEY": "k",
                "OPENLINEAGE_NAMESPACE": "n",
            },
            Lineage("http://m/e", api_key="k", namespace="n"),
        ),
        (Lineage("http://own", api_key=" k\n"), {}, Lineage("http://own", api_key="k")),
        (Lineage(file="f"), {"OPENLINEAGE_URL": "http://m"}, Lineage(file="f")),
        (Lineage("http://own"), {"OPENLINEAGE_DISABLED": "true"}, None),
    ],
)
def test_the_pipeline_says_where_and_then_the_environment(
    said: Lineage | None, environment: dict[str, str], found: Lineage | None
) -> None:
    assert settings_of(said, environment) == found


def test_a_url_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match="must begin with http"):
        settings_of(None, {"OPENLINEAGE_URL": "marquez:5000"})


def test_a_url_with_a_user_is_refused_and_not_told() -> None:
    with pytest.raises(ConfigError, match="say the url without, and api_key") as told:
        settings_of(Lineage("https://me:secret@marquez/api"), {})
    assert "secret" not in str(told.value)
