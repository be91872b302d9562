"""The measuring of the console, on a small broker: it fills what it says, and every call of the API is answered."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from bench.console import api_calls, filling
from bench.console.filling import Size
from tidelog.testing import Broker

SMALL = Size(6, 12, 3)


def test_a_cluster_is_filled_and_every_call_is_measured(tmp_path: Path) -> None:
    with Broker() as broker:
        bootstrap = broker.bootstrap_servers
        for _ in range(2):  # what is there already is left as it is
            asyncio.run(filling.fill(bootstrap, SMALL))
        topics, partitions, groups = asyncio.run(filling.counted(bootstrap))
        assert groups == SMALL.groups
        assert topics > SMALL.topics and partitions > SMALL.partitions, "the internal ones count"
        found = api_calls.measure(bootstrap, tmp_path, {1: os.getpid()}, SMALL)
    assert set(found) == {call.name for call in api_calls.calls(SMALL)}
    for name, row in found.items():
        first = row["first"]
        assert first["console_cpu_s"] > 0 and first["plain_bytes"] > 0 and row["memory_mb"] > 0, name
        assert not first["missing"], name
        assert sum(first["requests"].values()) > 0, name
    asked = found["lag of 50 groups"]["first"]["requests"]
    assert sum(count for key, count in asked.items() if "ListOffsets" not in key) <= 5, f"each group is asked alone: {asked}"
    rows = found["topics"]
    assert rows["first"]["requests"].keys() == {f"Metadata {bootstrap}"}
    assert rows["again"]["requests"] == {}, "what the console keeps is asked for again"
