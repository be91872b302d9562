"""The judge of a churn run finds what is planted, and nothing in a history that is right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.churn.history import Event, Run, Seen, violations


def event(t: int, kind: str, member: str, **fields: Any) -> Event:
    return {"t": t, "e": kind, "m": member, "g": "g", **fields}


RIGHT = Run(
    events=[
        event(1, "assigned", "a", n=1, p=["t-0", "t-1"]),
        event(2, "handled", "a", n=1, o={"t-0": [0, 1]}),
        event(3, "committed", "a", n=1, o={"t-0": 2}),
        event(5, "revoked", "a", n=1, p=["t-1"]),
        event(6, "assigned", "b", n=2, p=["t-1"]),
        event(7, "handled", "b", n=2, o={"t-1": [0]}),
        event(8, "committed", "b", n=2, o={"t-1": 1}),
    ],
    acknowledged={"t-0": {0, 1}, "t-1": {0}},
    seen=[Seen(4, "g", {"t-0": 2}), Seen(9, "g", {"t-0": 2, "t-1": 1})],
    live={"a": "g", "b": "g"},
    groups=("g",),
)


def test_a_run_in_which_all_went_well_has_no_violations() -> None:
    assert violations(RIGHT) == []


def test_a_record_nobody_handled_is_found() -> None:
    assert violations(replace(RIGHT, acknowledged={"t-0": {0, 1, 2}, "t-1": {0}})) == [
        "g: 1 records of t-0 were never handled: 2 to 2"
    ]


def test_two_owners_in_one_epoch_are_found_and_in_two_epochs_are_none() -> None:
    twice = event(10, "handled", "b", n=1, o={"t-0": [1]})
    assert "g: in epoch 1 t-0 belonged to a and to b" in violations(replace(RIGHT, events=[*RIGHT.events, twice]))
    later = event(10, "handled", "b", n=3, o={"t-0": [1]})
    assert violations(replace(RIGHT, events=[*RIGHT.events, later])) == []


def test_a_static_member_that_came_back_is_the_same_owner() -> None:
    again = event(10, "handled", "a2", n=1, o={"t-0": [1]})
    run = replace(RIGHT, events=[*RIGHT.events, again])
    assert violations(run) and not violations(replace(run, identity={"a": "i1", "a2": "i1"}))


def test_an_offset_that_went_back_is_found() -> None:
    assert violations(replace(RIGHT, seen=[*RIGHT.seen, Seen(10, "g", {"t-0": 1, "t-1": 1})])) == [
        "g: offset 1 of t-0 is committed, but 2 was seen before"
    ]


def test_a_commit_that_was_acknowledged_and_is_gone_is_found() -> None:
    assert violations(replace(RIGHT, seen=[Seen(9, "g", {"t-0": 2, "t-1": 0})])) == [
        "g: offset 0 of t-1 is committed, but 1 was acknowledged to b before"
    ]
    assert violations(replace(RIGHT, seen=[Seen(9, "g", {"t-1": 1})])) == [
        "g: nothing is committed for t-0, but 2 was acknowledged to a before"
    ]


def test_a_commit_acknowledged_after_the_onlooker_asked_proves_nothing() -> None:
    assert violations(replace(RIGHT, seen=[Seen(7, "g", {"t-0": 2})])) == []


def test_a_partition_without_an_owner_and_a_member_without_a_partition_are_found() -> None:
    without = [one for one in RIGHT.events if one["t"] < 6]
    found = violations(replace(RIGHT, events=[*without, event(9, "handled", "a", n=3, o={"t-1": [0]})], seen=[]))
    assert "in the end, g: t-1 belongs to nobody" in found and "in the end, g: b has nothing" in found
