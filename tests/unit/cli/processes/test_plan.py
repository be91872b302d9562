from __future__ import annotations

from dataclasses import replace

from tidelog.cli.processes.plan import Plan, Started


def test_a_plan_is_read_as_it_was_written() -> None:
    plan = Plan(
        (Started(1, ("a", "b")), Started(2, ("c",))),
        ("PLAINTEXT://h:1",),
        {"PLAINTEXT": 5},
        8,
        "/pages",
        6,
        7,
        "/d/processes",
        "info",
        "json",
        1.5,
    )
    assert plan.inherited() == (6, 5, 8)
    assert Plan.from_json(plan.to_json()) == plan
    with_console = replace(plan, console=("localhost:1", "127.0.0.1:0"))
    assert Plan.from_json(with_console.to_json()) == with_console
