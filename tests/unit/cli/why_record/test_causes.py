"""Each cause from the smallest change that makes it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cli.why_record.samples import MEMBER, facts, known, leader
from tests.unit.dead_letters.samples import EXHAUSTED, letter
from tidelog.cli.why_record.causes import decide
from tidelog.cli.why_record.facts import InLog, RecordFacts, Settings

COMMITTED = Settings(committed_only=True)
LOG = InLog(0, 20, 20, exists=True)
STORED: dict[str, Any] = {"start_offset": 3, "state": None}


@pytest.mark.parametrize(
    ("given", "cause", "state", "alarm"),
    [
        (facts(offset=20), "not-written", "no record", False),
        (facts(log=replace(LOG, first_offset=6)), "deleted", "no record", True),
        (facts(log=replace(LOG, first_offset=6), offset=2), "deleted", "no record", False),
        (facts(log=replace(LOG, exists=False, control=True)), "control-record", "no record", False),
        (facts(log=replace(LOG, exists=False)), "compacted", "no record", False),
        (facts(log=replace(LOG, aborted=True), settings=COMMITTED), "aborted", "no record", False),
        (facts(log=replace(LOG, aborted=True)), "waits", "not delivered yet", False),
        (facts(offset=2), "before-start", "finished", False),
        (facts(offset=2, leader=None), "before-start", "finished", False),
        (facts(leader=leader(known("acknowledged"))), "acknowledged", "finished", False),
        (facts(leader=leader(known("archived"))), "given-up", "finished", True),
        (facts(leader=None, stored={**STORED, "state": known("archived")}), "given-up", "finished", True),
        (facts(leader=leader(known("archived")), letter=("dlq", letter())), "dead-lettered", "finished", True),
        (facts(offset=2, letter=("dlq", letter())), "dead-lettered", "finished", True),
        (facts(leader=leader(known("archiving"))), "being-buried", "in flight", True),
        (facts(leader=leader(known("acquired", member="m1"))), "acquired", "in flight", False),
        (facts(leader=leader(known("acknowledged", persisting=True))), "being-stored", "in flight", False),
        (facts(leader=leader(known("available", persisting=True))), "being-stored", "in flight", False),
        (facts(leader=leader(known("available"))), "waits", "available", False),
        (facts(), "waits", "not delivered yet", False),
        (facts(state=None, members=(), initialized=False), "no-group", "not delivered yet", True),
        (facts(state="Empty", members=()), "no-members", "not delivered yet", True),
        (facts(members=(replace(MEMBER, topics=("mails",), assignment=()),)), "not-subscribed", "not delivered yet", True),
        (facts(members=(replace(MEMBER, assignment=()),)), "not-assigned", "not delivered yet", True),
        (facts(members=(replace(MEMBER, assignment=()),), initialized=False), "not-initialized", "not delivered yet", True),
        (facts(settings=COMMITTED, log=replace(LOG, last_stable_offset=5)), "open-transaction", "not delivered yet", True),
        (facts(log=replace(LOG, last_stable_offset=5)), "waits", "not delivered yet", False),
        (facts(leader={"share": None}), "not-fetched", "not delivered yet", True),
        (facts(leader={"share": {"phase": "gone", "error": "NOT_COORDINATOR"}}), "not-loaded", "not delivered yet", True),
        (facts(offset=10, leader=leader(in_flight=10), settings=Settings(max_locks=10)), "window", "not delivered yet", True),
        (facts(offset=13, settings=Settings(max_locks=10)), "window", "not delivered yet", False),
        (facts(offset=12, settings=Settings(max_locks=10)), "waits", "not delivered yet", False),
    ],
)
def test_the_cause(given: RecordFacts, cause: str, state: str, alarm: bool) -> None:
    verdict = decide(given)
    assert (verdict.primary.cause, verdict.state, verdict.primary.alarm) == (cause, state, alarm)
    assert verdict.primary.advice
    json.dumps(verdict.as_json())


def test_who_holds_it_until_when_and_which_delivery_this_is() -> None:
    found = decide(facts(leader=leader(known("acquired", member="m1", count=5)))).primary
    assert found.title == "member m1 (client app at 10.0.0.7) has it for 12.3 s more"
    assert found.evidence == ("delivery 5 of 5", "it holds offsets 5 to 7")
    assert "this was the last time" in found.advice
    assert "this was the last time" not in decide(facts(leader=leader(known("acquired", member="m1", count=4)))).primary.advice


def test_who_holds_the_window() -> None:
    found = decide(facts(offset=12, leader=leader(in_flight=10), settings=Settings(max_locks=10))).primary
    assert found.title == "2 records before it have not been delivered, and the window of the partition is full"
    assert found.evidence == (
        "offsets 3 to 9 are in flight, 10 of 10 (share.partition.max.record.locks)",
        "the first, 3, is acquired, held by member m1 (client app at 10.0.0.7) for 12.3 s more",
    )


def test_a_dead_letter_is_named_with_its_reason() -> None:
    found = decide(facts(offset=2, letter=("dlq", letter(7, why=EXHAUSTED)))).primary
    assert found.title.endswith("its dead letter is dlq:0:7")
    assert found.evidence == (f"reason: {EXHAUSTED}", "deliveries: 3")
    assert found.command == "tidelog share-groups dead-letters show dlq:0:7"


def test_other_causes_stand_beside_the_first_one() -> None:
    verdict = decide(facts(members=(), state="Empty", settings=COMMITTED, log=replace(LOG, last_stable_offset=5)))
    assert [verdict.primary.cause, *(each.cause for each in verdict.contributing)] == ["no-members", "open-transaction", "waits"]


def test_without_the_leader_it_is_not_certain_that_it_waits() -> None:
    assert not decide(facts(leader=None)).primary.certain
    assert decide(facts()).primary.certain


def test_a_group_without_a_letter_is_told_where_to_look() -> None:
    given = facts(leader=leader(known("archived")), settings=Settings(dead_letter_topic="dlq"))
    assert "no dead letter of it in dlq" in decide(given).primary.advice
