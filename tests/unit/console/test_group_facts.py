"""What two samples and a member say of themselves."""

from __future__ import annotations

from tidelog.console.group_facts import GroupFacts, MemberFacts, PartitionFacts, Sample


def test_the_lag_is_never_negative_and_0_where_it_is_not_known() -> None:
    assert PartitionFacts(committed=3, end=10).lag == 7
    assert PartitionFacts(committed=12, end=10).lag == 0
    assert PartitionFacts(end=10).lag == PartitionFacts(committed=3).lag == 0


def test_a_member_is_named_as_operators_know_it() -> None:
    assert MemberFacts("m", "app", "/10.0.0.1", "one").name == "app at 10.0.0.1, instance one"
    assert MemberFacts("m", "", "h").name == "m at h"


def test_the_time_between_two_samples_is_never_0() -> None:
    assert GroupFacts("g", Sample(1000), Sample(6000)).seconds == 5
    assert GroupFacts("g", Sample(1000), Sample(1000)).seconds > 0
