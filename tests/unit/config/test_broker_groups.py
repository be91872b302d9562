"""Options of groups: a value, and the bounds that a single group may set it within."""

from __future__ import annotations

import pytest

from tidelog.config.broker_groups import OPTIONS

BY_NAME = {option.name: option for option in OPTIONS}


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
@pytest.mark.parametrize("what", ["heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"])
def test_a_default_lies_within_its_own_bounds(kind: str, what: str) -> None:
    low, value, high = (BY_NAME[f"group.{kind}.{which}{what}"].default for which in ("min.", "", "max."))
    assert isinstance(low, int)
    assert isinstance(value, int)
    assert isinstance(high, int)
    assert low <= value <= high
