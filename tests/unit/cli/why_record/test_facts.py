from __future__ import annotations

from tests.unit.cli.why_record.samples import facts, known, leader


def test_the_leader_knows_best_then_what_is_stored() -> None:
    stored = {"start_offset": 1, "state": known("available")}
    assert facts(stored=stored).start == 3
    assert facts(stored=stored).range is None, "the leader has it not in flight"
    assert facts(stored=stored, leader=None).start == 1
    assert facts(stored=stored, leader=None).range == known("available")
    assert facts(leader={"share": None}).start == 3
    assert facts(leader=None).range is None
    assert facts(leader=leader(phase="loading")).share is None
    assert facts(leader=None, start_offset=None).start is None
    assert facts(leader=None, stored={"start_offset": -1, "state": None}).start is None


def test_a_holder_is_named_with_its_client() -> None:
    assert facts().holder("m1") == "member m1 (client app at 10.0.0.7)"
    assert facts().holder("m2") == "member m2, which is not in the group any more"
