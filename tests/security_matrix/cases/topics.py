"""Topics and configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.security_matrix.case import GROUPS, MIXED, TOPICS, UNKNOWN_ID, Case, World, by_topic, plain, with_fields
from tests.security_matrix.principals import PRINCIPALS
from tidelog.protocol.api_keys import ApiKey

LIMIT = {"timeout_ms": 30_000}
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
DELETERS = tuple(
    user
    for user in PRINCIPALS
    if user in ("root", "all") or user.startswith("but-") or user.endswith(("cluster-delete", "topic-delete"))
)
"""Users that may delete internal topics."""


def _metadata() -> list[Case]:
    asked = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    found = []
    for each in by_topic(ApiKey.METADATA, lambda world, topic: {"name": topic}):
        # Versions 0 to 3 create a topic that is missing.
        versions = (0, 8, 13) if each.state in ("exists", "hidden", "internal") else (4, 8, 13)
        found.append(Case(each.api, each.state, each.fields, versions=versions))
    found = with_fields(found, **asked, allow_auto_topic_creation=False)
    for each in by_topic(ApiKey.METADATA, lambda world, topic: {"name": None, "topic_id": world.id(topic)}):
        found += with_fields([Case(each.api, f"by id, {each.state}", each.fields, versions=(12, 13))], **asked)
    for prefix in ("open", "hidden"):
        found.append(
            Case(
                ApiKey.METADATA,
                f"created, {prefix}",
                lambda world, fresh, prefix=prefix: {  # type: ignore[misc]
                    "topics": [{"name": f"{prefix}-{fresh}"}],
                    "allow_auto_topic_creation": True,
                },
            )
        )
    return [
        *found,
        plain(ApiKey.METADATA, "all", topics=[], options={"versions": (0,)}),
        plain(ApiKey.METADATA, "all, with operations", topics=None, **asked, options={"versions": (1, 8, 13)}),
        plain(ApiKey.METADATA, "none named", topics=[], options={"versions": (1, 8, 13)}, **asked),
        *by_topic(ApiKey.DESCRIBE_TOPIC_PARTITIONS, lambda world, topic: {"name": topic}),
        plain(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "all", topics=[]),
    ]


def _create() -> list[Case]:
    def creatable(name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": [], **more}

    create, grow = ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS
    bad = {"configs": [{"name": "no.such.config", "value": "1"}]}
    names = {**TOPICS, "hidden and missing": "hidden-missing", "metadata": "__cluster_metadata", "illegal": "open-a b"}
    found = [
        plain(create, f"validated, {state}", **LIMIT, topics=[creatable(name)], validate_only=True)
        for state, name in names.items()
    ]
    return [
        *found,
        plain(create, "validated, mixed", **LIMIT, topics=[creatable(each) for each in MIXED], validate_only=True),
        plain(create, "named twice", **LIMIT, topics=[creatable("open-missing")] * 2, validate_only=True),
        plain(create, "bad config", **LIMIT, topics=[creatable("open-missing", **bad)], validate_only=True),
        plain(create, "bad config, hidden", **LIMIT, topics=[creatable("hidden-missing", **bad)], validate_only=True),
        Case(create, "created", lambda world, fresh: {**LIMIT, "topics": [creatable(f"open-{fresh}")]}),
        *with_fields(
            by_topic(grow, lambda world, topic: {"name": topic, "count": 99, "assignments": None}), **LIMIT, validate_only=True
        ),
        *[
            plain(
                grow, f"no more partitions, {state}", **LIMIT, topics=[{"name": TOPICS[state], "count": 1, "assignments": None}]
            )
            for state in ("exists", "hidden")
        ],
    ]


def _delete() -> list[Case]:
    delete = ApiKey.DELETE_TOPICS
    found = []
    for prefix in ("open", "hidden"):

        def by_its_name(world: World, fresh: str, prefix: str = prefix) -> dict[str, Any]:
            name = f"{prefix}-{fresh}"
            return {**LIMIT, "topic_names": [name], "topics": [{"name": name}]}

        def by_its_id(world: World, fresh: str, prefix: str = prefix) -> dict[str, Any]:
            return {**LIMIT, "topics": [{"name": None, "topic_id": world.id(f"{prefix}-{fresh}")}]}

        ahead: Mapping[str, Any] = {"prepared_topics": (f"{prefix}-",), "listeners": ("broker",)}
        found += [
            Case(delete, f"by name, {prefix}", by_its_name, **ahead),
            Case(delete, f"by id, {prefix}", by_its_id, **ahead, versions=(6,)),
        ]
    for state, name in {
        "missing": "open-missing",
        "hidden and missing": "hidden-missing",
        "internal": "__consumer_offsets",
    }.items():
        harmful = {"harmful": DELETERS} if state == "internal" else {}
        found.append(plain(delete, f"by name, {state}", **LIMIT, topic_names=[name], topics=[{"name": name}], options=harmful))
    found.append(
        Case(
            delete,
            "by id, internal",
            lambda world, _: {**LIMIT, "topics": [{"name": None, "topic_id": world.id("__consumer_offsets")}]},
            versions=(6,),
            harmful=DELETERS,
        )
    )
    unknown = [{"name": None, "topic_id": UNKNOWN_ID}]
    return [
        *found,
        plain(delete, "by id, missing", **LIMIT, topics=unknown, options={"versions": (6,)}),
        plain(
            delete,
            "by id and name",
            **LIMIT,
            topics=[{"name": "open-missing", "topic_id": UNKNOWN_ID}],
            options={"versions": (6,)},
        ),
    ]


def _configs() -> list[Case]:
    resources: dict[str, tuple[int, str, str, str]] = {
        **{f"topic {state}": (TOPIC, name, "retention.ms", "-1") for state, name in TOPICS.items()},
        "broker": (BROKER, "1", "log.cleaner.threads", "1"),
        "all brokers": (BROKER, "", "log.cleaner.threads", "1"),
        "broker missing": (BROKER, "77", "log.cleaner.threads", "1"),
        "logger": (LOGGER, "1", "kafka.server", "INFO"),
        "client metrics": (CLIENT_METRICS, "m", "interval.ms", "1000"),
        **{f"group {state}": (GROUP, name, "consumer.heartbeat.interval.ms", "5000") for state, name in GROUPS.items()},
        "unknown type": (77, "a", "b", "c"),
    }
    found = []
    for state, (kind, name, key, value) in resources.items():
        resource = {"resource_type": kind, "resource_name": name}
        legacy = {**resource, "configs": [{"name": key, "value": value}]}
        change = {**resource, "configs": [{"name": key, "config_operation": 0, "value": value}]}
        unknown = {**resource, "configs": [{"name": "no.such.config", "config_operation": 0, "value": value}]}
        found += [
            plain(ApiKey.DESCRIBE_CONFIGS, state, resources=[{**resource, "configuration_keys": None}]),
            plain(ApiKey.ALTER_CONFIGS, state, resources=[legacy], validate_only=True),
            plain(ApiKey.INCREMENTAL_ALTER_CONFIGS, state, resources=[change], validate_only=True),
            plain(ApiKey.INCREMENTAL_ALTER_CONFIGS, f"{state}, unknown config", resources=[unknown], validate_only=True),
        ]
    several = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": ["retention.ms"]} for name in MIXED]
    several.append({"resource_type": BROKER, "resource_name": "1", "configuration_keys": []})
    found.append(plain(ApiKey.DESCRIBE_CONFIGS, "several", resources=several))
    real = {"resource_type": TOPIC, "resource_name": "open-t"}
    found += [
        plain(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            "topic, changed",
            resources=[{**real, "configs": [{"name": "retention.ms", "config_operation": 0, "value": "-1"}]}],
            validate_only=False,
        ),
        plain(ApiKey.LIST_CONFIG_RESOURCES, "all", resource_types=[]),
        plain(ApiKey.LIST_CONFIG_RESOURCES, "topics", resource_types=[TOPIC], options={"versions": (1,)}),
    ]
    return found


def _placement() -> list[Case]:
    elected = by_topic(ApiKey.ELECT_LEADERS, lambda world, topic: {"topic": topic, "partitions": [0]}, entries="topic_partitions")
    moved = by_topic(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        lambda world, topic: {"name": topic, "partitions": [{"partition_index": 0, "replicas": None}]},
    )
    moving = by_topic(ApiKey.LIST_PARTITION_REASSIGNMENTS, lambda world, topic: {"name": topic, "partition_indexes": [0]})
    dirs = [{"path": "/no/such/dir", "topics": [{"name": name, "partitions": [0]} for name in MIXED]}]
    return [
        *with_fields(elected, **LIMIT, election_type=0),
        plain(ApiKey.ELECT_LEADERS, "all", **LIMIT, election_type=0, topic_partitions=None),
        *with_fields(moved, **LIMIT),
        *with_fields(moving, **LIMIT),
        plain(ApiKey.LIST_PARTITION_REASSIGNMENTS, "all", **LIMIT, topics=None),
        plain(ApiKey.ALTER_REPLICA_LOG_DIRS, "no such dir", dirs=dirs),
        *by_topic(ApiKey.DESCRIBE_LOG_DIRS, lambda world, topic: {"topic": topic, "partitions": [0]}),
        plain(ApiKey.DESCRIBE_LOG_DIRS, "none named", topics=[]),
    ]


def cases() -> list[Case]:
    """Metadata, creation and deletion, configs, placement."""
    return [*_metadata(), *_create(), *_delete(), *_configs(), *_placement()]
