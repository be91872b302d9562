from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tidelog.console.web import answers
from tidelog.console.web.answers import Answer, Lines, encoded, json_response, wrapped
from tidelog.console.web.ending import STREAM, Ending


def test_half_surrogates_stay_escaped() -> None:
    assert json.loads(encoded({"a": "\udcff\ud800ä"})) == {"a": "\udcff\ud800ä"}


def test_large_answers_are_compressed_for_those_who_take_it() -> None:
    value = {"rows": ["x" * 100] * 50}
    response = json_response(value, accepts_gzip=True)
    assert json.loads(gzip.decompress(bytes(response.body))) == value
    assert "content-encoding" not in json_response(value, accepts_gzip=False).headers
    assert "content-encoding" not in json_response({}, accepts_gzip=True).headers


def test_every_answer_has_one_shape() -> None:
    assert wrapped([1], 5) == {"data": [1], "as_of_ms": "5", "partial": []}
    assert wrapped(Answer(1, 3, (("broker 2", "gone"),)), 5) == {
        "data": 1,
        "as_of_ms": "3",
        "partial": [{"what": "broker 2", "error": "gone"}],
    }


async def served(
    lines: AsyncIterator[Mapping[str, Any]], *, leaves: bool = False, stuck: bool = False, ending: Ending | None = None
) -> tuple[list[dict[str, Any]], int]:
    """The lines that were sent, and how often the end was called."""
    ended: list[int] = []
    sent: list[dict[str, Any]] = []

    async def end() -> None:
        ended.append(1)

    async def receive() -> dict[str, Any]:
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if stuck and message["type"] == "http.response.body":
            await asyncio.Event().wait()
        sent.extend(json.loads(line) for line in message.get("body", b"").splitlines())

    await Lines(lines, end, ending or Ending())({"type": "http"}, receive, send)  # type: ignore[arg-type]
    return sent, len(ended)


async def three() -> AsyncIterator[Mapping[str, Any]]:
    for number in range(3):
        yield {"n": number}


async def endless() -> AsyncIterator[Mapping[str, Any]]:
    while True:
        await asyncio.Event().wait()
        yield {}


def test_a_stream_ends_once_however_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asyncio.run(served(three())) == ([{"n": 0}, {"n": 1}, {"n": 2}], 1)
    assert asyncio.run(served(endless(), leaves=True)) == ([], 1)
    monkeypatch.setattr(answers, "SLOWEST_S", 0.0)
    assert asyncio.run(served(three(), stuck=True)) == ([], 1)


def test_at_the_end_of_the_console_a_stream_ends_with_a_line_that_says_so() -> None:
    async def job() -> tuple[list[dict[str, Any]], int]:
        ending = Ending()

        async def one_and_no_more() -> AsyncIterator[Mapping[str, Any]]:
            yield {"n": 1}
            ending.begin()
            await asyncio.Event().wait()

        return await served(one_and_no_more(), ending=ending)

    assert asyncio.run(job()) == ([{"n": 1}, {"kind": "problem", "partition": None, "error": STREAM}], 1)


def test_a_quiet_stream_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "BEAT_S", 0.0)

    async def later() -> AsyncIterator[Mapping[str, Any]]:
        for _ in range(20):
            await asyncio.sleep(0)
        yield {"n": 1}

    sent, ended = asyncio.run(served(later()))
    assert sent[0] == {"kind": "beat"}
    assert (sent[-1], ended) == ({"n": 1}, 1)


def test_an_answer_is_the_same_wherever_it_is_compressed() -> None:
    async def run() -> None:
        for rows in (1, 100, answers.ASIDE_FROM):
            value = {"rows": ["x" * 10] * rows}
            found = await answers.json_answer(value, accepts_gzip=True)
            plain = await answers.json_answer(value, accepts_gzip=False)
            assert found.body == json_response(value, accepts_gzip=True).body
            assert json.loads(bytes(plain.body)) == value
            assert found.headers.get("content-encoding") == (None if rows == 1 else "gzip")

    asyncio.run(run())
