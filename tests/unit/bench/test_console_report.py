"""The page about the console on a large cluster, from samples."""

from __future__ import annotations

from bench.console.report import page
from bench.report import machine

ABOUT = {"date": "2026-11-28 12:00", "commit": "abc", "machine": "one core", "note": "Beside a simulator."}


def spent(**over: object) -> dict[str, object]:
    base = {
        "seconds": 0.5,
        "console_cpu_s": 0.25,
        "brokers_cpu_s": {"1": 0.010, "2": 0.020, "3": 0.030},
        "requests": {"Metadata 127.0.0.1:1": 1, "ListGroups 127.0.0.1:2": 3},
        "longest_turn_cpu_ms": 120.4,
        "ms": 499.6,
        "wire_bytes": 28_000,
        "plain_bytes": 820_000,
        "missing": [],
    }
    return {**base, **over}


def results(kind: str, **over: object) -> dict[str, object]:
    calls = {"topics": {"page": "topics", "first": spent(**over), "again": spent(ms=3.0, console_cpu_s=0.002), "memory_mb": 67.2}}
    filled = {"topics_s": 37.2, "groups_s": 2.1}
    part = {**ABOUT, "calls": calls}
    return {"kind": kind, "heap": "1G", "counted": [10_001, 40_050, 2_000], "filled_s": filled, "api": part}


def test_a_call_is_a_row_with_its_sums() -> None:
    text = page({"tidelog": results("tidelog")})
    assert "| topics | 500 | 250 | 120 | 60 | 4 | 28.0 | 820.0 | 3 | 2 | 67 |" in text
    assert "10,001 topics, 40,050 partitions, 2,000 groups" in text
    assert "one core. Beside a simulator." in text


def test_the_heap_is_stated_where_nodes_have_one() -> None:
    assert "Heap" not in page({"tidelog": results("tidelog")})
    assert "Heap of each node: 1G." in page({"apache": results("apache")})


def test_an_answer_with_parts_missing_says_so() -> None:
    assert "| topics (incomplete: groups, broker 2) |" in page({"tidelog": results("tidelog", missing=["groups", "broker 2"])})


def test_clusters_stand_in_the_same_order_whatever_ran_last() -> None:
    text = page({"apache": results("apache"), "tidelog": results("tidelog")})
    assert text.index("## tidelog") < text.index("## Apache Kafka")


def test_the_machine_is_named() -> None:
    assert "Python" in machine()
