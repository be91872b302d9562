"""Which denials are the cause."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.console.group_samples import SAMPLE, cause, facts, with_partition
from tidelog.console.audit_events import Denial
from tidelog.console.causes import diagnose

TOPIC = Denial(1, "User:app", "app", "10.0.0.1", "READ", "TOPIC", "orders")


def test_g9_names_who_was_denied_what_and_the_command() -> None:
    verdict = diagnose(facts(replace(with_partition(committed=40), denials=(TOPIC, TOPIC))))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == (
        "G9",
        ("User:app, client app at 10.0.0.1: READ on topic orders",),
    )
    assert verdict.primary.command == "tidelog acls --add --allow-principal User:app --operation Read --topic orders"


def test_denials_of_others_or_without_a_lag_are_no_cause() -> None:
    assert cause(diagnose(facts(replace(SAMPLE, denials=(TOPIC,))))) is None
    stranger = replace(TOPIC, client_id="stranger")
    assert cause(diagnose(facts(replace(with_partition(committed=40), denials=(stranger,))))) == "G4"


def test_a_denial_on_the_group_counts_before_anyone_has_joined() -> None:
    group = replace(TOPIC, kind="GROUP", name="g")
    assert cause(diagnose(facts(replace(SAMPLE, members=(), state="Empty", denials=(group,))))) == "G9"
