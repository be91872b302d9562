from __future__ import annotations

from tidelog.console.asking.plans import Plan, PlanRow


def test_a_preview_and_its_outcome_have_one_shape() -> None:
    plan = Plan("Delete topic t", (PlanRow("t", "1", None),), ("5 records",), confirm="t")
    preview = plan.as_json()
    assert (preview["done"], preview["dry_run"], preview["confirm"]) == (False, True, "t")
    assert preview["rows"] == [{"what": "t", "before": "1", "after": None, "note": None}]
    done = plan.carried_out((("t-0", "NOT_CONTROLLER"),)).as_json()
    assert (done["done"], done["dry_run"]) == (True, False)
    assert done["failed"] == [{"what": "t-0", "error": "NOT_CONTROLLER"}]
    assert set(done) == set(preview)
