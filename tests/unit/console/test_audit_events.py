"""Denials out of an audit, and whatever else may be in its topic."""

from __future__ import annotations

import json
from typing import Any

from tidelog.console.audit_events import Denial, denial_of, events
from tidelog.records.builder import RecordData, build_batch

EVENT = {
    "time": "2026-11-28T10:00:00.500Z",
    "type": "authorization",
    "principal": "User:app",
    "clientId": "app",
    "host": "10.0.0.1",
    "operation": "READ",
    "resourceType": "TOPIC",
    "resourceName": "orders",
    "allowed": False,
}


def line(**changes: Any) -> bytes:
    return json.dumps({**EVENT, **changes}).encode()


def test_a_denial_is_read() -> None:
    assert denial_of(line()) == Denial(1795860000500, "User:app", "app", "10.0.0.1", "READ", "TOPIC", "orders")


def test_other_events_and_anything_else_are_skipped() -> None:
    others = [line(allowed=True), line(dryRun=True), line(type="authentication"), line(time="soon"), line(time=7)]
    for each in (*others, b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b"x" * 100_000):
        assert denial_of(each) is None


def test_batches_are_read_until_the_last_whole_one() -> None:
    batch = bytes(build_batch([RecordData(None, line()), RecordData(None, None)], base_offset=5))
    found, following = events(batch + batch[:30], 5)
    assert (len(found), following) == (1, 7)
    assert events(b"", 5) == ([], 5)
