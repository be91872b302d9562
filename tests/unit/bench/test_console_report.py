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


def visit(name: str, round_: int, usable: float, **over: object) -> dict[str, object]:
    base = {"kind": "page", "round": round_, "name": name, "usable": usable, "paint": 250.0, "cpu": 100.0, "refused": ""}
    return {**base, **over}


def with_pages(*samples: dict[str, object]) -> dict[str, object]:
    scrolled = {"kind": "scroll", "round": 0, "frames": [16.0, 61.4], "cpu": [5.0, 12.0], "rows": 60}
    standing = {
        "no page": spent(requests={}, seconds=10.0),
        "topics": spent(requests={"Metadata 127.0.0.1:1": 15}, seconds=10.0, brokers_cpu_s={"1": 0.11, "2": 0.02, "3": 0.03}),
    }
    part = {**ABOUT, "seconds": 10, "samples": [*samples, scrolled], "open": standing, "memory_mb": 93.8}
    return {**results("tidelog"), "pages": part}


def test_a_page_has_its_first_visit_apart_and_is_held_against_the_goal() -> None:
    quick = [visit("topics", 0, 900), visit("topics", 1, 300), visit("topics", 2, 400, paint=None), visit("topics", 3, 700)]
    slow = [visit("health", 0, 900), visit("health", 1, 501)]
    text = page({"tidelog": with_pages(*quick, *slow)})
    assert "| topics | 250 | 900 | 400 | 700 | 100 | yes |" in text
    assert "| health | 250 | 900 | 501 | 501 | 100 | no |" in text
    assert "First paint within 300 ms: 5 of 5 visits, median 250 ms." in text
    assert "the longest frame of each round 61 ms" in text and "at most 12 ms" in text
    assert "at most 94 MB (goal: 150)" in text


def test_a_page_that_was_refused_says_so() -> None:
    assert "| topics (refused: no broker) |" in page({"tidelog": with_pages(visit("topics", 0, 1, refused="no broker"))})


def test_what_an_open_page_adds_is_less_what_brokers_do_anyway() -> None:
    text = page({"tidelog": with_pages(visit("topics", 0, 1))})
    assert "| no page | 0.00 | 2.50 | 0.10 | 0.20 | 0.30 | 0.00 |" in text
    assert "| topics | 1.50 | 2.50 | 1.10 | 0.20 | 0.30 | 1.00 |" in text


def test_produce_beside_a_search_is_compared_round_by_round() -> None:
    def period(p99: float, searches: int) -> dict[str, object]:
        return {**spent(), "p50_ms": 2.0, "p99_ms": p99, "most_ms": 99.0, "records": 1000, "searches": searches}

    rounds = [{"without": period(10, 0), "with": period(20, 2)}, {"without": period(20, 0), "with": period(20, 1)}]
    text = page({"tidelog": {**results("tidelog"), "search": {**ABOUT, "rate": 200, "records": 1000, "rounds": rounds}}})
    assert "| with a search | 2.0 | 20.0 | 20.0, 20.0 | 50 | 12 |" in text
    assert "p99 with over without, round by round: 1.50 (1.00 to 2.00" in text and "3 searches" in text
