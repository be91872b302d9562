"""Facts about record 5 of jobs-0 in group ``workers``, which is to be changed."""

from __future__ import annotations

from typing import Any

from tidelog.cli.why_record.facts import InLog, RecordFacts
from tidelog.client.admin.group_results import ShareMember

MEMBER = ShareMember("m1", "app", "/10.0.0.7", 3, (("jobs", 0),), ("jobs",))


def known(state: str, *, count: int = 1, member: str | None = None, persisting: bool = False, first: int = 5) -> dict[str, Any]:
    return {
        "first": first,
        "last": first + 2,
        "state": state,
        "delivery_count": count,
        "member": member,
        "lock_left_ms": None if member is None else 12_340,
        "persisting": persisting,
    }


def leader(state: dict[str, Any] | None = None, **share: Any) -> dict[str, Any]:
    """What the page of a leader says."""
    values = {
        "phase": "active",
        "error": None,
        "start_offset": 3,
        "end_offset": 9,
        "in_flight": 7,
        "finished_above_start": 0,
        "state": state,
        "first": known("acquired", member="m1", first=3),
        **share,
    }
    return {"leader_epoch": 0, "log_start_offset": 0, "high_watermark": 20, "last_stable_offset": 20, "share": values}


def facts(**changes: Any) -> RecordFacts:
    values: dict[str, Any] = {
        "log": InLog(0, 20, 20, exists=True, timestamp=1000),
        "state": "Stable",
        "members": (MEMBER,),
        "initialized": True,
        "start_offset": 3,
        "leader": leader(),
        **changes,
    }
    offset = values.pop("offset", 5)
    return RecordFacts("workers", "jobs", 0, offset, **values)
