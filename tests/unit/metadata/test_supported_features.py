import pytest

from tidelog.metadata.supported_features import (
    FEATURES,
    GROUP_PRINCIPALS,
    METADATA_VERSIONS,
    UnsupportedFeatureLevel,
    check_levels,
    default_levels,
    metadata_version_from_name,
    metadata_version_name,
    registered_ranges,
    supported_ranges,
)


def test_what_a_new_cluster_gets_is_supported_and_begins_with_metadata_version() -> None:
    check_levels(default_levels())
    assert next(iter(default_levels())) == "metadata.version"
    assert 0 not in default_levels().values()


def test_every_feature_is_registered_also_those_at_level_zero_only() -> None:
    assert set(supported_ranges()) == set(FEATURES)
    assert supported_ranges()["metadata.version"] == (7, 31)


def test_a_level_above_ours_is_refused_naming_feature_both_levels_and_the_way_down() -> None:
    with pytest.raises(UnsupportedFeatureLevel) as caught:
        check_levels({"metadata.version": 32, "group.version": 2})
    text = str(caught.value)
    assert "metadata.version is finalized at level 32, and this node supports levels 7 to 31" in text
    assert "group.version is finalized at level 2, and this node supports levels 0 to 1" in text
    assert text.endswith("downgrade --feature group.version=1 --feature metadata.version=31")


def test_a_level_below_ours_is_refused_with_the_way_up() -> None:
    with pytest.raises(UnsupportedFeatureLevel, match=r"upgrade --feature metadata\.version=7"):
        check_levels({"metadata.version": 6})


def test_an_unknown_feature_is_refused_unless_it_is_off() -> None:
    check_levels({"new.version": 0})
    with pytest.raises(UnsupportedFeatureLevel, match=r"does not know it.*downgrade --feature new\.version=0"):
        check_levels({"new.version": 2})


def test_release_names_lead_to_levels_and_back() -> None:
    assert metadata_version_from_name("4.3-IV0") == 30
    assert metadata_version_from_name("3.7") == 19
    assert metadata_version_name(7) == "3.3-IV3"
    assert metadata_version_name(32) == "32"
    assert sorted(METADATA_VERSIONS.values()) == list(range(7, 32))
    with pytest.raises(ValueError, match=r"Unknown metadata.version '9.9'. Supported metadata.version are: 3.3-IV3, "):
        metadata_version_from_name("9.9")


def test_nodes_also_register_what_only_they_have() -> None:
    ours = registered_ranges()
    assert ours.pop(GROUP_PRINCIPALS) == (0, 1), "Apache Kafka's controllers want level 0 in the range: it is never finalized"
    assert ours == supported_ranges()


def test_dead_letters_of_share_groups_come_with_the_metadata_version_of_kafka_4_4() -> None:
    assert default_levels()["share.version"] == default_levels(28)["share.version"] == 1
    assert default_levels(31)["share.version"] == 2
    assert "share.version" not in default_levels(27)
