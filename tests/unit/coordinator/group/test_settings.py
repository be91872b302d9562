import pytest

from tidelog.coordinator.group.settings import Bounded, GroupSettings, MigrationPolicy, served_assignors
from tidelog.model.errors import ConfigError

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


def test_defaults_of_the_consumer_protocol_are_kafkas() -> None:
    settings = GroupSettings()
    assert settings.consumer_assignors == ("uniform", "range")
    assert settings.consumer_session_timeout == Bounded(45_000, 45_000, 60_000)
    assert settings.consumer_heartbeat_interval == Bounded(5_000, 5_000, 15_000)
    assert settings.consumer_assignment_interval == Bounded(1_000, 0, 15_000)
    assert (settings.consumer_regex_refresh_interval_ms, settings.consumer_max_size) == (600_000, 2_147_483_647)
    assert settings.migration_policy is MigrationPolicy.BIDIRECTIONAL


@pytest.mark.parametrize(("own", "value"), [(None, 5), ("7", 7), ("1", 2), ("99", 9)])
def test_a_groups_own_value_counts_within_the_brokers_bounds(own: str | None, value: int) -> None:
    assert Bounded(5, 2, 9).of(own) == value


def test_a_policy_says_which_way_groups_may_change() -> None:
    ways = {policy.value: (policy.upgrades, policy.downgrades) for policy in MigrationPolicy}
    assert ways == {
        "disabled": (False, False), "upgrade": (True, False), "downgrade": (False, True), "bidirectional": (True, True),
    }  # fmt: skip


def test_assignors_are_named_as_kafka_names_them_or_its_classes() -> None:
    assert served_assignors(["range"]) == ("range",)
    package = "org.apache.kafka.coordinator.group.assignor"
    assert served_assignors([f"{package}.RangeAssignor", f"{package}.UniformAssignor"]) == ("range", "uniform")
    for unknown in (["com.example.Mine"], []):
        with pytest.raises(ConfigError, match="this node has uniform, range"):
            served_assignors(unknown)
