"""Groups and their offsets."""

from __future__ import annotations

from typing import Any

from tests.security_matrix.case import GROUPS, MIXED, TRANSACTIONAL_IDS, Case, World, by_name, plain
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CLASSIC = "open-kg"
CONSUMER, CONSUMER_HIDDEN, HIDDEN_CONSUMER = "open-cg", "open-cg-hidden", "hidden-cg"
COMMITTED = "open-commits"
STREAMED, STREAMED_HIDDEN = "open-stg", "open-stg-hidden"
STREAMS_MEMBER, STREAMS_STRANGER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
STATES = {**GROUPS, "with members": CLASSIC}
SUBSCRIPTION = b"\0\1" + ConsumerProtocolSubscription(topics=["open-t"]).encode(1)


def commit(world: World, topic: str) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    return {"name": topic, "topic_id": world.id(topic), "partitions": [partition]}


def _members() -> list[Case]:
    join: dict[str, Any] = {
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }
    unknown = {"generation_id": 1, "member_id": "stranger"}
    return [
        # A session timeout of 1 ms is refused after the check of the group: nothing changes.
        *by_name(ApiKey.JOIN_GROUP, STATES, lambda name: {**join, "group_id": name, "session_timeout_ms": 1}),
        Case(
            ApiKey.JOIN_GROUP,
            "new",
            lambda world, fresh: {**join, "group_id": f"open-{fresh}", "session_timeout_ms": 10_000},
        ),
        *by_name(ApiKey.HEARTBEAT, STATES, lambda name: {**unknown, "group_id": name}),
        *by_name(ApiKey.SYNC_GROUP, STATES, lambda name: {**unknown, "group_id": name, "assignments": []}),
        *by_name(
            ApiKey.LEAVE_GROUP,
            STATES,
            lambda name: {"group_id": name, "member_id": "stranger", "members": [{"member_id": "stranger"}]},
        ),
    ]


def _offsets() -> list[Case]:
    found = []
    for state, group in {"exists": COMMITTED, "hidden": GROUPS["hidden"], "with members": CLASSIC}.items():
        for topic in (*MIXED, "mixed"):
            names = MIXED if topic == "mixed" else (topic,)

            def fields(world: World, _: str, group: str = group, names: tuple[str, ...] = names) -> dict[str, Any]:
                return {"group_id": group, "topics": [commit(world, each) for each in names]}

            if state == "exists" or topic in ("open-t", "hidden-t", "mixed"):
                found.append(Case(ApiKey.OFFSET_COMMIT, f"group {state}, topic {topic}", fields))
    found.append(
        Case(
            ApiKey.OFFSET_COMMIT,
            "group new",
            lambda world, fresh: {"group_id": f"open-{fresh}", "topics": [commit(world, "open-t")]},
        )
    )
    for state, group in GROUPS.items():

        def fetch(world: World, _: str, group: str = group, whole: bool = False) -> dict[str, Any]:
            old = None if whole else [{"name": each, "partition_indexes": [0]} for each in MIXED]
            named = old and [{**each, "topic_id": world.id(each["name"])} for each in old]
            return {"group_id": group, "topics": old, "groups": [{"group_id": group, "topics": named}]}

        found.append(Case(ApiKey.OFFSET_FETCH, f"group {state}, named topics", fetch))
        found.append(
            Case(
                ApiKey.OFFSET_FETCH,
                f"group {state}, all topics",
                lambda world, fresh, fetch=fetch: fetch(world, fresh, whole=True),  # type: ignore[misc]
                versions=(2, 10),
            )
        )
    found.append(
        plain(
            ApiKey.OFFSET_FETCH,
            "several groups, all topics",
            groups=[{"group_id": group, "topics": None} for group in GROUPS.values()],
            options={"versions": (8, 10)},
        )
    )
    deleted = [{"name": each, "partitions": [{"partition_index": 0}]} for each in MIXED]
    for prefix in ("open", "hidden"):

        def delete(world: World, fresh: str, prefix: str = prefix) -> dict[str, Any]:
            return {"group_id": f"{prefix}-{fresh}", "topics": deleted}

        found.append(Case(ApiKey.OFFSET_DELETE, f"group {prefix}", delete, prepared_groups=(f"{prefix}-",)))
    found.append(plain(ApiKey.OFFSET_DELETE, "group missing", group_id=GROUPS["missing"], topics=deleted))
    found.append(plain(ApiKey.OFFSET_DELETE, "group with members", group_id=CLASSIC, topics=deleted))
    return found


def _listing() -> list[Case]:
    found = [
        plain(ApiKey.LIST_GROUPS, "all"),
        plain(ApiKey.LIST_GROUPS, "stable consumers", states_filter=["Stable"], types_filter=["consumer"]),
        plain(ApiKey.DESCRIBE_GROUPS, "mixed", groups=[*STATES.values(), CONSUMER], include_authorized_operations=True),
        plain(ApiKey.DESCRIBE_GROUPS, "none named", groups=[]),
        plain(ApiKey.DELETE_GROUPS, "missing and with members", groups_names=[GROUPS["missing"], CLASSIC]),
    ]
    found += by_name(ApiKey.DESCRIBE_GROUPS, STATES, lambda name: {"groups": [name], "include_authorized_operations": True})
    for prefix in ("open", "hidden"):

        def delete(world: World, fresh: str, prefix: str = prefix) -> dict[str, Any]:
            return {"groups_names": [f"{prefix}-{fresh}"]}

        found.append(Case(ApiKey.DELETE_GROUPS, prefix, delete, prepared_groups=(f"{prefix}-",)))
    for kind, names in {0: GROUPS, 1: TRANSACTIONAL_IDS, 2: {"exists": "open-g:AAAAAAAAAAAAAAAAAAAAAQ:0"}}.items():
        versions = {0: (0, 3, 6), 1: (1, 3, 6), 2: (6,)}[kind]
        found += [
            plain(
                ApiKey.FIND_COORDINATOR,
                f"type {kind}, {state}",
                key=name,
                key_type=kind,
                coordinator_keys=[name],
                options={"versions": versions},
            )
            for state, name in names.items()
        ]
        found.append(
            plain(
                ApiKey.FIND_COORDINATOR,
                f"type {kind}, several",
                key_type=kind,
                coordinator_keys=list(names.values()),
                options={"versions": (4, 6)},
            )
        )
    return found


def _consumer_groups() -> list[Case]:
    join = {"member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 0, "rebalance_timeout_ms": 10_000, "topic_partitions": []}
    heartbeat = ApiKey.CONSUMER_GROUP_HEARTBEAT

    def joining(names: list[str] | None, prefix: str = "open", regex: str | None = None) -> Any:
        chosen = {"subscribed_topic_names": names, "subscribed_topic_regex": regex}
        return lambda world, fresh: {**join, **chosen, "group_id": f"{prefix}-{fresh}"}

    described = {"with members": CONSUMER, "of a hidden topic": CONSUMER_HIDDEN, "hidden": HIDDEN_CONSUMER, **GROUPS}
    states = {**described, "classic": CLASSIC}
    return [
        Case(heartbeat, "new, topic exists", joining(["open-t"])),
        Case(heartbeat, "new, topic hidden", joining(["open-t", "hidden-t"])),
        Case(heartbeat, "new, topic missing", joining(["open-missing"])),
        Case(heartbeat, "new, topic internal", joining(["__consumer_offsets"])),
        Case(heartbeat, "new, pattern", joining(None, regex=".*"), versions=(1,)),
        Case(heartbeat, "new, bad pattern", joining(None, regex="("), versions=(1,)),
        Case(heartbeat, "new, group hidden", joining(["open-t"], "hidden")),
        *by_name(
            heartbeat,
            {"unknown member": CONSUMER, "unknown member, hidden": HIDDEN_CONSUMER},
            lambda name: {"group_id": name, "member_id": "stranger", "member_epoch": 3},
        ),
        *by_name(
            ApiKey.CONSUMER_GROUP_DESCRIBE, states, lambda name: {"group_ids": [name], "include_authorized_operations": True}
        ),
        plain(ApiKey.CONSUMER_GROUP_DESCRIBE, "mixed", group_ids=list(states.values()), include_authorized_operations=True),
        plain(ApiKey.CONSUMER_GROUP_DESCRIBE, "mixed, operations not asked", group_ids=list(states.values())),
    ]


def streams_member(group: str, source: str, changelog: str | None = None) -> dict[str, Any]:
    """The first heartbeat of a member whose topology reads a topic, and may keep a store."""
    topics = [] if changelog is None else [{"name": changelog, "partitions": 0, "replication_factor": 1, "topic_configs": []}]
    subtopology = {
        "subtopology_id": "0",
        "source_topics": [source],
        "source_topic_regex": [],
        "state_changelog_topics": topics,
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
    }
    return {
        "group_id": group,
        "member_id": STREAMS_MEMBER,
        "member_epoch": 0,
        "rebalance_timeout_ms": 10_000,
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "process",
    }


def _streams() -> list[Case]:
    heartbeat = ApiKey.STREAMS_GROUP_HEARTBEAT

    def joining(source: str, prefix: str = "open") -> Any:
        return lambda world, fresh: streams_member(f"{prefix}-{fresh}", source)

    states = {**GROUPS, "with a member": STREAMED, "with a hidden topic": STREAMED_HIDDEN}
    return [
        Case(heartbeat, "new, topic exists", joining("open-t")),
        Case(heartbeat, "new, topic hidden", joining("hidden-t")),
        Case(heartbeat, "new, topic missing", joining("open-missing")),
        Case(heartbeat, "new, topic internal", joining("__consumer_offsets")),
        Case(heartbeat, "new, group hidden", joining("open-t", "hidden")),
        Case(
            heartbeat,
            "new, changelog missing",
            lambda world, fresh: streams_member(f"open-{fresh}", "open-t", f"open-{fresh}-changelog"),
        ),
        *by_name(
            heartbeat,
            {"unknown member": STREAMED, "unknown group": GROUPS["missing"]},
            lambda name: {"group_id": name, "member_id": STREAMS_STRANGER, "member_epoch": 3},
        ),
        *by_name(
            ApiKey.STREAMS_GROUP_DESCRIBE, states, lambda name: {"group_ids": [name], "include_authorized_operations": True}
        ),
        plain(ApiKey.STREAMS_GROUP_DESCRIBE, "mixed", group_ids=list(states.values())),
    ]


def cases() -> list[Case]:
    """Members, offsets, listing and describing; classic, consumer and streams groups."""
    return [*_members(), *_offsets(), *_listing(), *_consumer_groups(), *_streams()]
