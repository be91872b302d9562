"""The golden transcripts over HTTP: each answer as it stands there, and there is one for each route, parameter and error code.

``REFERENCE`` is what Confluent's documents and clients say the API has: the transcripts have all of it, or say that it is not
there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.judges.registry.transcripts import DOCUMENTS, RUNNING, Session, Transcript, read_all
from tests.unit.registry.serving.transcript_server import Seen, served
from tidelog.registry.registering import Rules
from tidelog.registry.rest.api import Api
from tidelog.registry.rest.schemas import About
from tidelog.registry.state import State

TRANSCRIPTS = read_all()
IDS = {str(number): number for number in range(1, 10)}
"""In an empty registry ids count up from 1."""
PAGE = "offset limit"
ONE, TESTS = "/subjects/{subject}/versions/{version}", "/compatibility/subjects/{subject}/versions"
REFERENCE = f"""
GET /
POST /
GET /v1/metadata/id
GET /v1/metadata/version
GET /schemas subjectPrefix aliases deleted latestOnly ruleType {PAGE}
GET /schemas/types
GET /schemas/ids/{{id}} subject format referenceFormat findTags fetchMaxId
GET /schemas/ids/{{id}}/schema subject format
GET /schemas/ids/{{id}}/subjects subject deleted {PAGE}
GET /schemas/ids/{{id}}/versions subject deleted {PAGE}
GET /schemas/guids/{{guid}} format
GET /schemas/guids/{{guid}}/ids
GET /subjects subjectPrefix deleted deletedOnly {PAGE}
POST /subjects/{{subject}} normalize format deleted
DELETE /subjects/{{subject}} permanent
GET /subjects/{{subject}}/metadata key value format deleted
GET /subjects/{{subject}}/versions deleted deletedOnly {PAGE}
POST /subjects/{{subject}}/versions normalize format
GET {ONE} format referenceFormat findTags deleted
DELETE {ONE} permanent
GET {ONE}/schema format deleted
GET {ONE}/referencedby deleted {PAGE}
POST {TESTS} normalize verbose
POST {TESTS}/{{version}} normalize verbose
GET /config defaultToGlobal
PUT /config
DELETE /config
GET /config/{{subject}} defaultToGlobal
PUT /config/{{subject}}
DELETE /config/{{subject}}
GET /mode defaultToGlobal
PUT /mode force
DELETE /mode recursive
GET /mode/{{subject}} defaultToGlobal
PUT /mode/{{subject}} force
DELETE /mode/{{subject}} recursive
GET /contexts contextPrefix {PAGE}
DELETE /contexts/{{context}}
"""
ABSENT = """
GET /v1/metadata/deployment
POST /subjects/{subject}/versions/{version}/tags
POST /associations
POST /associations:batch
GET /associations/resources/{id}
PUT /associations/resources/{id}
DELETE /associations/resources/{id}
GET /associations/resources/{namespace}/{name}
GET /associations/subjects/{subject}
"""
CODES = {
    *range(40401, 40410),
    *(409, 40901),
    *range(42201, 42212),
    *(50001, 50002, 50003, 50004),
    *(400, 401, 404, 405, 406, 413, 415, 422, 429, 40301),
}
"""40410, 40902 to 40908 and 42212 are those of associations, which are not there."""


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """What all transcripts asked; the tests below run after them."""
    yield Seen()


def _name(transcript: Transcript) -> str:
    return f"{transcript.file}: {transcript.title}"


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=_name)
def test_a_transcript_is_answered_as_it_stands_there(transcript: Transcript, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(transcript.setup, seen, monkeypatch) as url:
        session = Session(url, dict(IDS))
        for exchange in transcript.exchanges:
            answer = session.send(exchange)
            place = f"{transcript.file}:{exchange.line} {exchange.method} {exchange.target}"
            assert session.differences(exchange, answer) == [], f"{place}: {answer}"
        session.close()


def test_there_is_a_transcript_for_each_route_and_parameter(seen: Seen) -> None:
    _needs_all(seen)
    table = {(route.method, route.path) for route in Api(State(), Rules(), About("c", "1")).routes}
    assert table - seen.routes == set()
    assert seen.read - seen.given == set(), "parameters that the server looks for, and no transcript gives"
    for line in REFERENCE.split("\n"):
        if not line:
            continue
        method, path, *parameters = line.split()
        assert (method, path) in seen.routes
        given = {name for *place, name in seen.given if place == [method, path]}
        assert given >= set(parameters), f"{method} {path}"


def test_there_is_a_transcript_for_each_error_code() -> None:
    codes = {exchange.error_code for transcript in TRANSCRIPTS for exchange in transcript.exchanges}
    assert codes - {None} == CODES


def test_what_is_left_out_is_left_out_wholly() -> None:
    answered = [each for transcript in TRANSCRIPTS for each in transcript.exchanges]
    for line in ABSENT.split("\n"):
        if not line:
            continue
        method, path = line.split()
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        found = [each for each in answered if each.method == method and pattern.fullmatch(each.target.partition("?")[0])]
        assert {each.answer.status for each in found} == {404}, line


def test_each_answer_says_where_it_is_known_from() -> None:
    for transcript in TRANSCRIPTS:
        for exchange in transcript.exchanges:
            assert exchange.source.startswith((RUNNING, DOCUMENTS)), f"{transcript.file}:{exchange.line}"


def _needs_all(seen: Seen) -> None:
    if len(seen.routes) < 5:
        pytest.skip("runs with all transcripts")
