import pytest

from tidelog.coordinator.group.settings import GroupSettings

DEFAULTS = {
    "min_session_timeout_ms": 6000,
    "max_session_timeout_ms": 1800000,
    "initial_rebalance_delay_ms": 3000,
    "max_size": 2147483647,
    "offset_metadata_max_bytes": 4096,
    "offsets_retention_ms": 10080 * 60 * 1000,
    "offsets_retention_check_interval_ms": 600000,
}


@pytest.mark.parametrize(("name", "value"), DEFAULTS.items())
def test_defaults_are_kafkas(name: str, value: int) -> None:
    assert getattr(GroupSettings(), name) == value
