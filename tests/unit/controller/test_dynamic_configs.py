from typing import Any

import pytest

from tests.unit.controller.test_broker_registration import with_elr
from tests.unit.controller.test_elect_leaders import create
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import alter_configs as legacy
from tidelog.protocol.messages import incremental_alter_configs as incremental
from tidelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def topics(cluster: Any) -> Any:
    """Topic t with a=1, topic u with nothing."""
    wanted = [
        CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=[CreatableTopicConfig(name="a", value="1")]),
        CreatableTopic(name="u", num_partitions=1, replication_factor=1),
    ]
    cluster.ask(QuorumController.create_topics, CreateTopicsRequest(topics=wanted))
    return cluster


def alter(
    cluster: Any, resource: tuple[int, str], *changes: tuple[str, int, str | None], validate_only: bool = False
) -> tuple[int, str]:
    configs = [incremental.AlterableConfig(name=name, config_operation=op, value=value) for name, op, value in changes]
    asked = incremental.AlterConfigsResource(resource_type=resource[0], resource_name=resource[1], configs=configs)
    request = incremental.IncrementalAlterConfigsRequest(resources=[asked], validate_only=validate_only)
    response = cluster.ask(QuorumController.incremental_alter_configs, request).responses[0]
    assert (response.resource_type, response.resource_name) == resource
    return response.error_code, response.error_message or ""


def replace(cluster: Any, resource: tuple[int, str], **settings: str | None) -> tuple[int, str]:
    configs = [legacy.AlterableConfig(name=name, value=value) for name, value in settings.items()]
    asked = legacy.AlterConfigsResource(resource_type=resource[0], resource_name=resource[1], configs=configs)
    response = cluster.ask(QuorumController.alter_configs, legacy.AlterConfigsRequest(resources=[asked])).responses[0]
    return response.error_code, response.error_message or ""


def test_settings_are_set_and_deleted_and_the_others_stay(topics: Any) -> None:
    assert alter(topics, (2, "t"), ("b", SET, "2"), ("c", SET, "3")) == (0, "")
    assert topics.settings_of("t") == {"a": "1", "b": "2", "c": "3"}
    assert alter(topics, (2, "t"), ("a", DELETE, None), ("b", SET, "9")) == (0, "")
    assert topics.settings_of("t") == {"b": "9", "c": "3"}
    assert [(record.name, record.value) for record in topics.records] == [("b", "9"), ("a", None)]


def test_lists_grow_and_shrink_from_what_is_set_or_from_the_default(topics: Any) -> None:
    alter(topics, (2, "t"), ("list", APPEND, "x,y"), ("list.with.default", SUBTRACT, "d1"))
    assert topics.settings_of("t") == {"a": "1", "list": "x,y", "list.with.default": "d2"}
    alter(topics, (2, "t"), ("list", APPEND, "y,z"))
    alter(topics, (2, "t"), ("list.with.default", APPEND, "d3"))
    assert topics.settings_of("t") == {"a": "1", "list": "x,y,z", "list.with.default": "d2,d3"}
    alter(topics, (2, "t"), ("list", SUBTRACT, "x,q"))
    assert topics.settings_of("t")["list"] == "y,z"


def test_a_list_does_not_grow_beyond_what_a_record_can_hold(topics: Any) -> None:
    half = ",".join(f"{number:07}" for number in range(2_500))
    assert alter(topics, (2, "t"), ("list", APPEND, half)) == (0, "")
    code, says = alter(topics, (2, "t"), ("list", APPEND, half.replace("0", "x")))
    assert (code, "32767 are the most" in says) == (ErrorCode.INVALID_CONFIG, True)
    assert topics.settings_of("t")["list"] == half


@pytest.mark.parametrize(
    ("resource", "changes", "code", "says"),
    [
        ((2, "x"), [("a", SET, "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'x' does not exist."),
        ((2, "t"), [("b", SET, "bad")], ErrorCode.INVALID_CONFIG, "b is bad"),
        ((2, "t"), [("b", SET, None)], ErrorCode.INVALID_REQUEST, "Null value not supported"),
        ((2, "t"), [("b", SET, "1"), ("b", DELETE, None)], ErrorCode.INVALID_REQUEST, "duplicate config keys"),
        ((2, "t"), [("b", 7, "1")], ErrorCode.INVALID_REQUEST, "Unknown operation type 7"),
        ((2, "t"), [("b", APPEND, "1")], ErrorCode.INVALID_CONFIG, "Can't APPEND to key b because its type is not LIST"),
        ((4, "one"), [("b", SET, "1")], ErrorCode.INVALID_REQUEST, "'one' is not a node id"),
        ((4, "1"), [("b", SET, "bad")], ErrorCode.INVALID_REQUEST, "b is bad"),
        ((3, "t"), [("b", SET, "1")], ErrorCode.INVALID_REQUEST, "Unknown resource type 3"),
        ((2, ""), [("b", SET, "1")], ErrorCode.INVALID_REQUEST, "Topics have no default resource"),
        ((16, ""), [("b", SET, "1")], ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        ((32, ""), [("b", SET, "1")], ErrorCode.INVALID_REQUEST, "Groups have no default resource"),
    ],
)
def test_all_changes_of_a_resource_are_refused_together(
    topics: Any, resource: tuple[int, str], changes: list[tuple[str, int, str | None]], code: ErrorCode, says: str
) -> None:
    error, message = alter(topics, resource, ("ok", SET, "1"), *changes)
    assert error == code
    assert says in message
    assert topics.records == []


def test_one_resource_is_refused_and_the_next_one_changed(topics: Any) -> None:
    change = incremental.AlterableConfig(name="b", config_operation=SET, value="1")
    resources = [incremental.AlterConfigsResource(resource_type=2, resource_name=name, configs=[change]) for name in ("x", "u")]
    request = incremental.IncrementalAlterConfigsRequest(resources=resources)
    response = topics.ask(QuorumController.incremental_alter_configs, request)
    assert [each.error_code for each in response.responses] == [3, 0]
    assert topics.settings_of("u") == {"b": "1"}


def test_a_resource_named_twice_is_refused_both_times(topics: Any) -> None:
    change = incremental.AlterableConfig(name="b", config_operation=SET, value="1")
    twice = [incremental.AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])] * 2
    request = incremental.IncrementalAlterConfigsRequest(resources=twice)
    response = topics.ask(QuorumController.incremental_alter_configs, request)
    refused = (42, "Resource 't' is in the request twice: merge its changes into one entry.")
    assert [(each.error_code, each.error_message) for each in response.responses] == [refused, refused]
    assert topics.records == []


def test_a_topic_setting_that_stands_already_is_not_written_but_a_brokers_is(topics: Any) -> None:
    alter(topics, (2, "t"), ("a", SET, "1"))
    assert topics.records == []
    for _ in range(2):
        alter(topics, (4, "1"), ("a", SET, "1"))
        assert len(topics.records) == 1
    alter(topics, (4, ""), ("z", SET, "1"))
    assert topics.image.cluster_configs == {"z": "1"}


def test_validate_only_answers_and_writes_nothing(topics: Any) -> None:
    assert alter(topics, (2, "t"), ("b", SET, "2"), validate_only=True) == (0, "")
    assert topics.settings_of("t") == {"a": "1"}


def test_the_old_form_replaces_all_settings(topics: Any) -> None:
    assert replace(topics, (2, "t"), b="2") == (0, "")
    assert topics.settings_of("t") == {"b": "2"}
    assert [(record.name, record.value) for record in topics.records] == [("b", "2"), ("a", None)]
    assert replace(topics, (2, "t")) == (0, "")
    assert (2, "t") not in topics.image.configs


def test_the_old_form_refuses_like_the_new_one(topics: Any) -> None:
    assert replace(topics, (2, "x"), b="1")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replace(topics, (2, "t"), b="bad")[0] == ErrorCode.INVALID_CONFIG
    assert replace(topics, (2, "t"), b=None)[0] == ErrorCode.INVALID_REQUEST
    assert topics.settings_of("t") == {"a": "1"}


MIN_IN_SYNC = "min.insync.replicas"


@pytest.fixture
def eligible(topics: Any) -> Any:
    """With eligible leader replicas the minimum is checked too."""
    with_elr(topics)
    assert alter(topics, (4, ""), (MIN_IN_SYNC, SET, "2")) == (0, "")
    return topics


def test_another_minimum_in_sync_clears_who_was_eligible_under_the_old_one(eligible: Any) -> None:
    assert [record.NAME for record in eligible.records] == ["ConfigRecord", "ClearElrRecord"]
    assert eligible.records[1].topic_name == ""
    assert alter(eligible, (2, "t"), (MIN_IN_SYNC, SET, "1"), ("b", SET, "1")) == (0, "")
    assert [record.NAME for record in eligible.records] == ["ConfigRecord", "ConfigRecord", "ClearElrRecord"]
    assert eligible.records[2].topic_name == "t"
    assert alter(eligible, (2, "t"), ("b", SET, "2")) == (0, "")
    assert [record.NAME for record in eligible.records] == ["ConfigRecord"]
    assert replace(eligible, (2, "t"), b="2") == (0, "")
    assert [record.NAME for record in eligible.records] == ["ConfigRecord", "ConfigRecord", "ClearElrRecord"]


def test_with_eligible_leaders_the_minimum_is_one_for_all_brokers(eligible: Any) -> None:
    code, message = alter(eligible, (4, "1"), (MIN_IN_SYNC, SET, "1"))
    assert (code, "Broker-level" in message) == (ErrorCode.INVALID_CONFIG, True)
    code, message = alter(eligible, (4, ""), (MIN_IN_SYNC, DELETE, None))
    assert (code, "Cluster-level" in message) == (ErrorCode.INVALID_CONFIG, True)
    assert eligible.records == []


def test_without_eligible_leaders_nothing_is_cleared(topics: Any) -> None:
    assert alter(topics, (4, "1"), (MIN_IN_SYNC, SET, "1")) == (0, "")
    assert [record.NAME for record in topics.records] == ["ConfigRecord"]


@pytest.mark.parametrize(("minimum", "kept"), [("3", (1, 2)), ("1", (1,))])
def test_where_nobody_leads_eligible_replicas_are_kept_as_far_as_that_is_safe(
    make_cluster: Any, minimum: str, kept: tuple[int, ...]
) -> None:
    cluster = make_cluster(1, 2, min_insync_replicas=2)
    with_elr(cluster)
    create(cluster, "t", [1, 2])
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1, want_fence=True)
    assert alter(cluster, (2, "t"), (MIN_IN_SYNC, SET, minimum)) == (0, "")
    (partition,) = cluster.image.topics.by_name["t"].partitions
    assert (partition.isr, partition.elr, partition.last_known_elr) == ((), kept, (1,))
