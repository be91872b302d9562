from __future__ import annotations

from tidelog.broker.quotas.usage import IDLE_MS, Usage


def test_who_invents_names_fills_no_memory_and_the_longest_idle_is_forgotten() -> None:
    usage: Usage[str, list[int]] = Usage(list, most=3)
    kept = usage.of("kept", 0)
    for number in range(100):
        usage.of(f"invented-{number}", number)
        assert usage.of("kept", number) is kept
    assert len(usage) == 3
    assert [name for name, _ in usage.items()] == ["invented-98", "invented-99", "kept"]


def test_who_was_idle_for_an_hour_begins_anew() -> None:
    usage: Usage[str, list[int]] = Usage(list)
    first = usage.of("a", 0)
    assert usage.of("a", IDLE_MS - 1) is first
    usage.of("b", 2 * IDLE_MS - 2)
    assert len(usage) == 2
    usage.of("b", 2 * IDLE_MS - 1)
    assert len(usage) == 1
    assert usage.of("a", 2 * IDLE_MS) is not first
