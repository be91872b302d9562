"""Share groups, the offsets of their partitions, and their state at the share coordinator.

A cell that changes a group, or that reads records, has a share group of its own, which is prepared: without members, with a state
of ``open-t`` and ``hidden-t`` at offset 0. All others change nothing, or the same: members are unknown, groups have members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.security_matrix.case import GROUPS, MIXED, TOPICS, UNKNOWN_ID, Case, World, by_name, plain
from tidelog.protocol.api_keys import ApiKey

SHARED, SHARED_HIDDEN, SHARED_EMPTY = "open-sg", "open-sg-hidden", "open-sg-empty"
HIDDEN_SHARED = "hidden-sg"
MEMBER, STRANGER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
CLASSIC, CONSUMER = "open-kg", "open-cg"
STATED, HIDDEN_STATED = "open-stated", "hidden-stated"
"""Share groups without members that have a state."""
READ_EPOCH = 50
"""The leader epoch with which the states of ``of_state`` have been read."""
OWN = ("open-share-",)
HIDDEN_OWN = ("hidden-share-",)
STATES = {
    **GROUPS,
    "with a member": SHARED,
    "with a hidden topic": SHARED_HIDDEN,
    "without members": SHARED_EMPTY,
    "hidden, with a member": HIDDEN_SHARED,
    "classic": CLASSIC,
    "consumer": CONSUMER,
    "without a name": "",
}
ZERO_ID = bytes(16)

SOME = {"max_wait_ms": 20_000, "min_bytes": 1, "batch_size": 500, "max_bytes": 1_000_000, "max_records": 100}
"""A state is loaded by its first fetch, which waits for that."""
NOTHING = {"max_wait_ms": 0, "min_bytes": 0, "batch_size": 500, "max_bytes": 0, "max_records": 0}
ACKS = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]


def of_state(api: ApiKey) -> str:
    """The share group whose state the cells of this API name."""
    return f"open-state-{api.name.lower().replace('_', '-')}"


def _own(fresh: str, hidden: bool = False) -> str:
    return f"{(HIDDEN_OWN if hidden else OWN)[0]}{fresh}"


def _heartbeats() -> list[Case]:
    api = ApiKey.SHARE_GROUP_HEARTBEAT
    join: dict[str, Any] = {"member_id": MEMBER, "member_epoch": 0}

    def joining(topics: list[str] | None, prefix: str = "open", **changed: Any) -> Callable[[World, str], Mapping[str, Any]]:
        return lambda world, fresh: {**join, "group_id": f"{prefix}-{fresh}", "subscribed_topic_names": topics, **changed}

    found = [
        *(Case(api, f"new, topic {state}", joining([topic])) for state, topic in TOPICS.items()),
        Case(api, "new, topics mixed", joining(list(MIXED))),
        Case(api, "new, without topics", joining([])),
        Case(api, "new, topics null", joining(None)),
        Case(api, "new, group hidden", joining(["open-t"], "hidden")),
        Case(api, "new, without a member id", joining(["open-t"], member_id="")),
        Case(api, "new, long member id", joining(["open-t"], member_id="m" * 37)),
        Case(api, "new, epoch below -1", joining(["open-t"], member_epoch=-2)),
        Case(api, "new, leaves", joining(None, member_epoch=-1)),
        Case(api, "new, has an epoch", joining(None, member_epoch=7)),
        Case(api, "new, without a rack id", joining(["open-t"], rack_id="")),
    ]
    stranger: dict[str, Any] = {"member_id": STRANGER, "member_epoch": 1}
    known: dict[str, Any] = {"member_id": MEMBER, "member_epoch": 99}
    for topic in ("open-t", "hidden-t"):
        named = {f"{state}, {topic}": name for state, name in STATES.items()}
        found += by_name(api, named, lambda name, topic=topic: {**stranger, "group_id": name, "subscribed_topic_names": [topic]})  # type: ignore[misc]
    found += by_name(
        api, {f"wrong epoch, {state}": name for state, name in STATES.items()}, lambda name: {**known, "group_id": name}
    )
    found += by_name(
        api,
        {
            f"joins, {state}": name
            for state, name in {**GROUPS, "classic": CLASSIC, "consumer": CONSUMER}.items()
            if state != "missing"
        },
        lambda name: {**join, "group_id": name, "subscribed_topic_names": ["open-t"]},
    )
    return found


def _descriptions() -> list[Case]:
    api = ApiKey.SHARE_GROUP_DESCRIBE
    return [
        *by_name(api, STATES, lambda name: {"group_ids": [name], "include_authorized_operations": True}),
        plain(api, "mixed", group_ids=list(STATES.values()), include_authorized_operations=True),
        plain(api, "mixed, operations not asked", group_ids=list(STATES.values())),
        plain(api, "none named", group_ids=[]),
        plain(ApiKey.CONSUMER_GROUP_DESCRIBE, "share group", group_ids=[SHARED]),
        plain(ApiKey.DESCRIBE_GROUPS, "share group", groups=[SHARED], include_authorized_operations=True),
        plain(ApiKey.LIST_GROUPS, "share groups", types_filter=["share"], options={"versions": (5,)}),
        plain(
            ApiKey.LIST_GROUPS, "empty share groups", types_filter=["share"], states_filter=["Empty"], options={"versions": (5,)}
        ),
    ]


def _records() -> list[Case]:
    """A session is opened, or asked for where there is none; nothing is acknowledged, for nothing is held."""

    def topics(world: World, names: tuple[str, ...], **each: Any) -> list[dict[str, Any]]:
        return [{"topic_id": world.id(name), "partitions": [{"partition_index": 0, **each}]} for name in names]

    def fetch(
        state: str,
        names: tuple[str, ...],
        limits: Mapping[str, Any] = SOME,
        /,
        *,
        hidden: bool = False,
        reads: bool = False,
        **changed: Any,
    ) -> Case:
        acks = {"acknowledgement_batches": changed.pop("acks")} if "acks" in changed else {}

        def fields(world: World, fresh: str) -> dict[str, Any]:
            asked = {"group_id": _own(fresh, hidden), "member_id": MEMBER, "share_session_epoch": 0, **limits}
            return {**asked, "topics": topics(world, names, **acks), **changed}

        return Case(ApiKey.SHARE_FETCH, state, fields, prepared_shares=HIDDEN_OWN if hidden else OWN if reads else ())

    found = [
        *(fetch(f"topic {state}", (name,), reads=True) for state, name in TOPICS.items() if state in {"exists", "hidden"}),
        *(fetch(f"topic {state}", (name,)) for state, name in TOPICS.items() if state not in {"exists", "hidden"}),
        # Of two partitions that are loaded, either may be first: for a user that may read both the answer is one of two.
        replace(fetch("one of two topics", ("open-t", "hidden-t"), reads=True), harmful=("root",)),
        fetch("topics mixed, nothing asked", ("open-t", "hidden-t", "__consumer_offsets"), NOTHING),
        fetch("no topics", ()),
        fetch("group hidden", ("open-t",), hidden=True),
        fetch("acknowledges at once", ("open-t", "hidden-t"), acks=ACKS),
        fetch("exact", ("open-t",), reads=True, share_acquire_mode=1),
        fetch("renews and reads", ("open-t",), is_renew_ack=True),
        fetch("renews", ("open-t", "hidden-t"), {**NOTHING, "batch_size": 0}, is_renew_ack=True, acks=ACKS),
        fetch("group null", ("open-t",), group_id=None),
        fetch("group without a name", ("open-t",), group_id=""),
        fetch("member null", ("open-t",), member_id=None),
        fetch("member without a name", ("open-t",), member_id=""),
        fetch("member with a long name", ("open-t",), member_id="m" * 37),
        fetch("unknown session", ("open-t", "hidden-t"), member_id=STRANGER, share_session_epoch=3),
        fetch("unknown session ends", ("open-t",), member_id=STRANGER, share_session_epoch=-1),
    ]

    def acknowledge(state: str, names: tuple[str, ...], **changed: Any) -> Case:
        def fields(world: World, fresh: str) -> dict[str, Any]:
            asked = {"group_id": SHARED, "member_id": STRANGER, "share_session_epoch": 1}
            return {**asked, "topics": topics(world, names, acknowledgement_batches=ACKS), **changed}

        return Case(ApiKey.SHARE_ACKNOWLEDGE, state, fields)

    found += [
        *(acknowledge(f"group {state}", (), group_id=name) for state, name in STATES.items()),
        acknowledge("topics mixed", MIXED),
        acknowledge("first of a session", MIXED, share_session_epoch=0),
        acknowledge("session ends", MIXED, share_session_epoch=-1),
        acknowledge("group null", ("open-t",), group_id=None),
        acknowledge("member null", ("open-t",), member_id=None),
        acknowledge("member without a name", ("open-t",), member_id=""),
        acknowledge("member with a long name", ("open-t",), member_id="m" * 37),
    ]
    return found


def _offsets() -> list[Case]:
    describe, alter, delete = (
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    )

    def described(names: tuple[str, ...], partition: int = 0) -> list[dict[str, Any]]:
        return [{"topic_name": name, "partitions": [partition]} for name in names]

    def altered(names: tuple[str, ...], partition: int = 0) -> list[dict[str, Any]]:
        return [{"topic_name": name, "partitions": [{"partition_index": partition, "start_offset": 0}]} for name in names]

    def deleted(names: tuple[str, ...]) -> list[dict[str, Any]]:
        return [{"topic_name": name} for name in names]

    found = [
        *by_name(
            describe,
            {f"topics mixed, {state}": name for state, name in STATES.items()},
            lambda name: {"groups": [{"group_id": name, "topics": described(MIXED)}]},
        ),
        *by_name(
            describe,
            {f"all topics, {state}": name for state, name in STATES.items()},
            lambda name: {"groups": [{"group_id": name, "topics": None}]},
        ),
        plain(describe, "several groups", groups=[{"group_id": name, "topics": None} for name in STATES.values()]),
        plain(describe, "no topics", groups=[{"group_id": SHARED, "topics": []}]),
        *by_name(
            describe,
            {"with a state": STATED, "with a state, hidden": HIDDEN_STATED},
            lambda name: {"groups": [{"group_id": name, "topics": described(MIXED)}]},
        ),
    ]
    # A group that has no members, and one that does not exist, would be changed.
    unchanged = {state: name for state, name in STATES.items() if state not in {"missing", "without members"}}
    found += by_name(
        alter,
        {f"topics mixed, {state}": name for state, name in unchanged.items()},
        lambda name: {"group_id": name, "topics": altered(MIXED)},
    )
    found += by_name(
        delete,
        {f"topics mixed, {state}": name for state, name in {**unchanged, "missing": GROUPS["missing"]}.items()},
        lambda name: {"group_id": name, "topics": deleted(MIXED)},
    )

    def new(prefix: str, names: tuple[str, ...], partition: int = 0) -> Callable[[World, str], Mapping[str, Any]]:
        return lambda world, fresh: {"group_id": f"{prefix}-{fresh}", "topics": altered(names, partition)}

    found += [
        *(Case(alter, f"new group, topic {state}", new("open", (name,))) for state, name in TOPICS.items()),
        Case(alter, "new group, topics mixed", new("open", MIXED)),
        Case(alter, "new group, no such partition", new("open", ("open-t",), 99)),
        Case(alter, "new group, no topics", new("open", ())),
        Case(alter, "new group, hidden", new("hidden", ("open-t",))),
    ]
    for hidden in (False, True):
        state = "prepared, hidden" if hidden else "prepared"
        own = HIDDEN_OWN if hidden else OWN

        def of_own(topics: list[dict[str, Any]], hidden: bool = hidden) -> Callable[[World, str], Mapping[str, Any]]:
            return lambda world, fresh: {"group_id": _own(fresh, hidden), "topics": topics}

        found += [
            Case(alter, f"topics mixed, {state}", of_own(altered(MIXED)), prepared_shares=own),
            Case(delete, f"topics mixed, {state}", of_own(deleted(MIXED)), prepared_shares=own),
            Case(
                ApiKey.DELETE_GROUPS,
                f"share group, {state}",
                lambda world, fresh, hidden=hidden: {"groups_names": [_own(fresh, hidden)]},  # type: ignore[misc]
                prepared_shares=own,
            ),
        ]
    found += [
        Case(
            delete,
            "nothing to delete",
            lambda w, fresh: {"group_id": _own(fresh), "topics": deleted(("open-idempotent",))},
            prepared_shares=OWN,
        ),
        Case(delete, "no topics", lambda w, fresh: {"group_id": _own(fresh), "topics": []}, prepared_shares=OWN),
        plain(ApiKey.DELETE_GROUPS, "share group with a member", groups_names=[SHARED, SHARED_HIDDEN, HIDDEN_SHARED]),
    ]
    commits = {"name": "open-t", "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}
    found += [
        Case(
            ApiKey.OFFSET_COMMIT,
            "share group",
            lambda world, _: {"group_id": SHARED, "topics": [{**commits, "topic_id": world.id("open-t")}]},
        ),
        plain(
            ApiKey.OFFSET_DELETE,
            "share group",
            group_id=SHARED,
            topics=[{"name": "open-t", "partitions": [{"partition_index": 0}]}],
        ),
        plain(
            ApiKey.OFFSET_FETCH,
            "share group, all topics",
            groups=[{"group_id": SHARED, "topics": None}],
            options={"versions": (8, 10)},
        ),
        plain(
            ApiKey.OFFSET_FETCH,
            "share group",
            groups=[{"group_id": SHARED, "topics": [{"name": "open-t", "partition_indexes": [0]}]}],
            options={"versions": (8, 9)},
        ),
    ]
    return found


STATE_APIS: dict[ApiKey, dict[str, Any]] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: {"state_epoch": 100, "start_offset": 0},
    ApiKey.READ_SHARE_GROUP_STATE: {"leader_epoch": 100},
    ApiKey.WRITE_SHARE_GROUP_STATE: {
        "state_epoch": 100,
        "leader_epoch": 100,
        "start_offset": 0,
        "state_batches": [{"first_offset": 0, "last_offset": 1, "delivery_state": 2, "delivery_count": 1}],
    },
    ApiKey.DELETE_SHARE_GROUP_STATE: {},
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: {"leader_epoch": 100},
}
"""The requests between brokers, and what is in them of a partition."""


def _state() -> list[Case]:
    """To the state of a group that only this API names, and to states that do not exist or cannot be."""
    found = []
    for api, fields in STATE_APIS.items():
        group = of_state(api)

        def to(
            topic: str | bytes, group: str = group, fields: dict[str, Any] = fields, **changed: Any
        ) -> Callable[[World, str], Mapping[str, Any]]:
            def built(world: World, fresh: str) -> dict[str, Any]:
                topic_id = world.id(topic) if isinstance(topic, str) else topic
                return {
                    "group_id": group,
                    "topics": [{"topic_id": topic_id, "partitions": [{"partition": 0, **fields, **changed}]}],
                }

            return built

        found += [
            Case(api, "exists", to("open-t")),
            Case(api, "no such partition", to("open-t", partition=99)),
            Case(api, "negative partition", to("open-t", partition=-1)),
            Case(api, "unknown topic", to(UNKNOWN_ID)),
            Case(api, "zero topic id", to(ZERO_ID)),
            Case(api, "without a group", to("open-t", group="")),
            plain(api, "no topics", group_id=group, topics=[]),
        ]
        if api is ApiKey.INITIALIZE_SHARE_GROUP_STATE:
            found.append(Case(api, "new group", lambda w, fresh, to=to: to("open-t", group=f"open-{fresh}")(w, fresh)))  # type: ignore[misc]
            found += [Case(api, f"start offset {each}", to("open-t", start_offset=each)) for each in (-1, -2)]
        else:
            found.append(Case(api, "unknown group", to("open-t", group=GROUPS["missing"])))
        for epoch in [each for each in ("state_epoch", "leader_epoch") if each in fields]:
            if api is not ApiKey.READ_SHARE_GROUP_STATE_SUMMARY:
                found += [Case(api, f"{epoch.replace('_', ' ')} {each}", to("open-t", **{epoch: each})) for each in (-1, 0)]
    for kind, key in {
        "a key": "open-sg:AAAAAAAAAAAAAAAAAAAAAQ:0",
        "no key": "open-sg",
        "no topic id": "open-sg:topic:0",
        "no partition": "open-sg:AAAAAAAAAAAAAAAAAAAAAQ:p",
        "without a group": ":AAAAAAAAAAAAAAAAAAAAAQ:0",
    }.items():
        found.append(
            plain(ApiKey.FIND_COORDINATOR, f"share state, {kind}", key_type=2, coordinator_keys=[key], options={"versions": (6,)})
        )
    return found


def cases() -> list[Case]:
    """Members, records and acknowledgements, offsets, and the state at the share coordinator."""
    return [*_heartbeats(), *_descriptions(), *_records(), *_offsets(), *_state()]
