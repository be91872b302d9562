"""Paths, and which of them write."""

from __future__ import annotations

from tests.unit.registry.caller import INT, Caller


def test_subjects_may_hold_slashes_and_percent_signs() -> None:
    call = Caller()
    call.register("a%2Fb%25c", INT)
    assert call("GET", "/subjects") == ["a/b%c"]
    assert call("GET", "/subjects/a%2Fb%25c/versions") == [1]


def test_paths_that_are_not_there() -> None:
    call = Caller()
    assert call.refusal("GET", "/nothing").status == 404
    assert call.refusal("GET", "/associations/resources/-/t").status == 404
    assert call.refusal("PATCH", "/subjects").status == 405
    assert call("GET", "/") == {}
    assert call("GET", "/v1/metadata/id")["scope"]["clusters"]["kafka-cluster"] == "cluster"
    assert call.code("GET", "/schemas/ids/99999999999") == 404


def test_every_route_says_whether_it_writes() -> None:
    """What can append a record is guarded as a write: a reader's login must not reach it."""
    reading = {route.path for route in Caller().api.routes if route.method != "GET" and not route.writes}
    assert reading == {
        "/",
        "/subjects/{subject}",
        "/compatibility/subjects/{subject}/versions",
        "/compatibility/subjects/{subject}/versions/{version}",
    }
