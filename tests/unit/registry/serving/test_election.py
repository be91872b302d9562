"""Who leads: what registries say of themselves, and the choice."""

from __future__ import annotations

import json

import pytest

from tidelog.registry.serving.election import (
    DUPLICATE_URLS,
    Assignment,
    Identity,
    choose,
    read_assignment,
    read_identity,
    write_assignment,
    write_identity,
)

A, B = Identity("a", 1), Identity("b", 1)


def said(identity: Identity) -> bytes:
    return write_identity(identity, leads=False)


def test_members_say_where_they_are_in_confluents_form() -> None:
    wanted = '{"version":1,"host":"a","port":1,"master_eligibility":true,"scheme":"http","leader":false}'
    assert said(A) == wanted.encode()
    assert read_identity(b'{"version":1,"host":"a","port":1,"master_eligibility":true,"later":1}') == A


@pytest.mark.parametrize("raw", [b"", b"x", b"[]", b'{"host":"a"}', b'{"host":"a","port":"1"}', b"\xff", b"[" * 100_000])
def test_what_is_no_registry_says_so(raw: bytes) -> None:
    with pytest.raises(ValueError):
        read_identity(raw)


def test_the_eligible_member_with_the_smallest_url_leads() -> None:
    assert choose({"2": said(A), "1": said(B)}) == Assignment(0, A, "2")
    assert choose({"1": said(B), "2": said(Identity("a", 1, eligible=False))}) == Assignment(0, B, "1")
    assert choose({"1": said(Identity("a", 1, eligible=False))}) == Assignment(0, None)
    assert choose({"1": said(B), "2": b"a console"}) == Assignment(0, B, "1")


def test_two_members_with_one_url_have_no_leader() -> None:
    assert choose({"1": said(A), "2": said(A)}) == Assignment(DUPLICATE_URLS, None)


def test_an_assignment_has_confluents_form() -> None:
    raw = write_assignment(Assignment(0, A, "m"))
    assert json.loads(raw) == {"version": 1, "error": 0, "master": "m", "master_identity": A.as_json(leads=True)}
    assert read_assignment(raw) == Assignment(0, A, "m")
    assert read_assignment(write_assignment(Assignment(1, None))) == Assignment(1, None)
