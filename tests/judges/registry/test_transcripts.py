"""Transcripts are read, compared and marked, and a judge's answers become sources and a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.judges.registry.transcripts import DOCUMENTS, RUNNING, Answer, Exchange, Session, read, write_sources
from tests.judges.registry.verdicts import REASONS, Judged, page, reason, source, unused

TEXT = """=== One
% fault=append
> POST /subjects/s/versions
> X-Request-ID: a
> {"schema": "int"}
< 200
< {"id": "$1"}
> GET /schemas/ids/$1
< 404
"""


def exchange(body: str, status: int = 200) -> Exchange:
    return Exchange(1, "GET", "/subjects", {}, "", Answer(status, body))


def test_a_file_is_read_and_marked_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    (one,) = read(path)
    first, second = one.exchanges
    assert (one.title, one.setup) == ("One", {"fault": "append"})
    assert (first.line, first.headers, first.body) == (3, {"X-Request-ID": "a"}, '{"schema": "int"}')
    assert (second.target, second.answer) == ("/schemas/ids/$1", Answer(404, ""))
    write_sources(path, {3: RUNNING, 8: DOCUMENTS})
    assert [each.source for each in read(path)[0].exchanges] == [RUNNING, DOCUMENTS]
    marked = path.read_text()
    write_sources(path, {each.line: each.source for each in read(path)[0].exchanges})
    assert path.read_text() == marked


def test_what_differs_is_named() -> None:
    session = Session("http://127.0.0.1:1")

    def found(wanted: str, given: str, status: int = 200) -> list[str]:
        return session.differences(exchange(wanted), Answer(status, given))

    assert found('["a"]', '["a"]') == []
    assert found("[]", "[1]", 500) == ["status 500 instead of 200", "body is [1] instead of []"]
    assert sorted(found('{"a": "...", "b": 1}', '{"a": "x", "c": 1}')) == ["c besides", "no b"]
    assert found('{"error_code": 1}', '{"error_code": 1}') == ["no message"]
    assert found('{"error_code": 1}', '{"error_code": 1, "message": "why"}') == []
    assert found('{"a": "..."}', '{"a": ""}') == ['a is "" instead of "..."']
    assert found("[1]", "[true]") == ["[0] is true instead of 1"]
    assert found('["..."]', "[null]") == ['[0] is null instead of "..."']


def test_an_id_stands_for_the_same_number_throughout() -> None:
    session = Session("http://127.0.0.1:1")
    assert session.differences(exchange('{"id": "$1"}'), Answer(200, '{"id": 7}')) == []
    assert session.ids == {"1": 7}
    assert session.differences(exchange('["$1"]'), Answer(200, "[8]")) == ["[0] is 8, another id than before"]
    assert session.differences(exchange('["$2"]'), Answer(200, "[7]")) == ["[0] is 7, the id of another schema"]


def test_a_judge_confirms_what_it_answers_alike() -> None:
    assert source("J", ()) == f"{RUNNING}: J"
    assert source("J", ("no guid", "[0].id besides")) == f"{RUNNING}: J, but for [0].id, guid"
    assert source("J", ("no guid", "status 404 instead of 200")) == DOCUMENTS
    assert source("J", ("no error_code", "id besides")) == DOCUMENTS


def test_the_page_has_a_row_with_a_reason_for_each_difference() -> None:
    judged = [
        Judged("a.txt", exchange("[]"), ()),
        Judged("a.txt", exchange("{}"), ("no guid",)),
        Judged("a.txt", replace(exchange("", 404), method="DELETE"), ("status 409 instead of 404",)),
    ]
    found = page("J", judged, "2026-11-28")
    assert "on 2026-11-28" in found
    assert "| 3 | 1 | 1 | 1 |" in found
    assert reason(judged[2]) in found.splitlines()[-1]
    assert reason(judged[2]) == "the same code with another status"


def test_a_reason_for_no_difference_is_named() -> None:
    (used,) = {row for row in REASONS if row[2] == "the same code with another status"}
    found = unused([Judged("a.txt", replace(exchange("", 404), method="DELETE"), ("status 409 instead of 404",))])
    assert len(found) == len(REASONS) - 1
    assert " ".join(used) not in found
