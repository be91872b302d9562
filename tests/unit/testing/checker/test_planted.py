"""The checker against a cluster with one fault each, and without any: it is not told which."""

from __future__ import annotations

import itertools

import pytest

from sim.histories import FAULTS, history
from tidelog.testing.checker import Anomaly, check_events

SEEDS = 6
CLEAN_SEEDS = 150
BY_HAND = {Anomaly.G0, Anomaly.G1C, Anomaly.G_SINGLE, Anomaly.G2}
"""Cycles are planted in test_cycles.py: a model that orders transactions has none to break."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_for_what_it_is(fault: str) -> None:
    struck = (events for seed in itertools.count() for events, hit in [history(seed, fault=fault)] if hit)
    for events in itertools.islice(struck, SEEDS):
        verdict = check_events(events)
        assert FAULTS[fault] in verdict.anomalies, verdict.text()


def test_every_class_of_anomaly_is_planted() -> None:
    assert set(FAULTS.values()) | BY_HAND == set(Anomaly)
    assert len(FAULTS) >= 20


@pytest.mark.parametrize("first", range(0, CLEAN_SEEDS, 25))
def test_what_a_good_cluster_does_passes(first: int) -> None:
    """With clients that die, lost answers, late coordinators and members that lose their partitions."""
    for seed in range(first, first + 25):
        events, _ = history(seed)
        verdict = check_events(events)
        assert verdict.valid, f"seed {seed}\n{verdict.text()}"
        assert verdict.counts is not None
        assert min(verdict.counts.commits, verdict.counts.aborts) > 5, "a history without transactions shows nothing"
