"""What leaders say about share partitions, put into a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.console.group_samples import AT, HEALTHY
from tidelog.console.group_facts import SHARE, Sample, ShareProgress, ShareWindow
from tidelog.console.node_facts import LOCK_TIMEOUTS, NodeFacts
from tidelog.console.windows import MOST, asked, with_windows

FOUND = Sample(0, "Stable", SHARE, partitions={AT: replace(HEALTHY, committed=40, share=ShareProgress(True, None, 40, 60))})
FIRST = {
    "state": "acquired",
    "delivery_count": 2,
    "member": "m1",
    "lock_left_ms": 900,
    "first": 45,
    "last": 50,
    "persisting": False,
}


def page(share: Any, node: int = 1) -> dict[str, Any]:
    return {"node": {"id": node}, "leader": {"share": share}}


ACTIVE = {
    "phase": "active",
    "error": None,
    "start_offset": 45,
    "end_offset": 54,
    "in_flight": 10,
    "finished_above_start": 2,
    "first": FIRST,
}


def test_the_leader_knows_more_than_what_is_stored() -> None:
    labels = frozenset({("group", "g"), ("topic", AT[0]), ("partition", str(AT[1]))})
    nodes = (NodeFacts(1, metrics={(LOCK_TIMEOUTS, labels): 3.0}),)
    other = {"node": {"id": 2}, "leader": None}
    part = with_windows(replace(FOUND, nodes=nodes), "g", {AT: [other, page(ACTIVE)]}).partitions[AT]
    assert part.share is not None
    assert part.share.window == ShareWindow("active", None, 45, 54, 10, 2, "acquired", 2, "m1", 900, 3.0)
    assert (part.committed, part.lag) == (45, 53)


def test_a_leader_without_a_session_or_a_state() -> None:
    silent = with_windows(FOUND, "g", {AT: [page(None)]}).partitions[AT]
    assert silent.share is not None and silent.share.leader_seen and silent.share.window is None
    assert (silent.committed, silent.lag) == (40, 60)
    loading = with_windows(FOUND, "g", {AT: [page({"phase": "loading", "error": "NOT_COORDINATOR"})]}).partitions[AT]
    assert loading.share is not None and loading.share.window == ShareWindow("loading", "NOT_COORDINATOR")


def test_timeouts_are_not_known_without_the_metrics_of_the_leader() -> None:
    part = with_windows(replace(FOUND, nodes=(NodeFacts(2, metrics={}),)), "g", {AT: [page(ACTIVE)]}).partitions[AT]
    assert part.share is not None and part.share.window is not None and part.share.window.lock_timeouts is None


def test_partitions_with_a_lag_are_asked_about_first() -> None:
    done = replace(HEALTHY, share=ShareProgress(True, None, 100, 0))
    many = {("a", number): done for number in range(MOST + 10)} | {
        ("z", 0): FOUND.partitions[AT],
        ("y", 0): replace(done, leader=-1),
    }
    rows = asked(replace(FOUND, partitions=many))
    assert (len(rows), rows[0]) == (MOST, ("z", 0))
    assert not asked(Sample(0, "Stable", partitions={AT: HEALTHY})), "a consumer group has no windows"
