"""Transactions. Producers are unknown to the coordinator, so that no request starts or ends one."""

from __future__ import annotations

from typing import Any

from tests.security_matrix.case import GROUPS, MIXED, TRANSACTIONAL_IDS, Case, World, by_name, by_topic, plain
from tests.security_matrix.cases.groups import COMMITTED, commit
from tests.security_matrix.cases.records import UNKNOWN_PRODUCER
from tidelog.protocol.api_keys import ApiKey

ONGOING = "open-ongoing"
PRODUCER: dict[str, Any] = {"producer_id": UNKNOWN_PRODUCER, "producer_epoch": 0}


def _init() -> list[Case]:
    fields: dict[str, Any] = {"transaction_timeout_ms": 60_000}
    by_state = by_name(
        ApiKey.INIT_PRODUCER_ID,
        {state: TRANSACTIONAL_IDS[state] for state in ("exists", "hidden")},
        lambda name: {**fields, "transactional_id": name},
        alone=True,
    )
    return [
        *by_state,
        Case(ApiKey.INIT_PRODUCER_ID, "new", lambda world, fresh: {**fields, "transactional_id": f"open-{fresh}"}),
        plain(ApiKey.INIT_PRODUCER_ID, "no transaction", **fields, transactional_id=None),
    ]


def _add() -> list[Case]:
    found = []
    for state, name in TRANSACTIONAL_IDS.items():
        for topic in (*MIXED, "mixed"):
            topics = [{"name": each, "partitions": [0]} for each in (MIXED if topic == "mixed" else (topic,))]
            client = {
                "v3_and_below_transactional_id": name,
                "v3_and_below_producer_id": UNKNOWN_PRODUCER,
                "v3_and_below_producer_epoch": 0,
                "v3_and_below_topics": topics,
            }
            broker = {"transactional_id": name, **PRODUCER, "verify_only": True, "topics": topics}
            if state != "exists" and topic not in ("open-t", "mixed"):
                continue
            found += [
                plain(
                    ApiKey.ADD_PARTITIONS_TO_TXN,
                    f"id {state}, topic {topic}",
                    **client,
                    options={"versions": (0, 3)},
                ),
                plain(
                    ApiKey.ADD_PARTITIONS_TO_TXN,
                    f"from a broker, id {state}, topic {topic}",
                    transactions=[broker],
                    options={"versions": (4, 5)},
                ),
            ]
        found += [
            plain(ApiKey.ADD_OFFSETS_TO_TXN, f"id {state}, group {which}", transactional_id=name, **PRODUCER, group_id=group)
            for which, group in GROUPS.items()
        ]
    return found


def _commit() -> list[Case]:
    found = []
    for state, name in TRANSACTIONAL_IDS.items():
        for which, group in {"exists": COMMITTED, "hidden": GROUPS["hidden"]}.items():
            for names in (("open-t",), ("hidden-t",), ("open-missing",), MIXED):

                def fields(
                    world: World, _: str, tid: str = name, group: str = group, names: tuple[str, ...] = names
                ) -> dict[str, Any]:
                    topics = [{key: value for key, value in commit(world, each).items() if key != "topic_id"} for each in names]
                    return {"transactional_id": tid, "group_id": group, **PRODUCER, "member_id": "", "topics": topics}

                topic = "mixed" if len(names) > 1 else names[0]
                found.append(Case(ApiKey.TXN_OFFSET_COMMIT, f"id {state}, group {which}, topic {topic}", fields, alone=True))
    return found


def cases() -> list[Case]:
    """From InitProducerId to the markers, and the transactions that are described."""
    ids = {**TRANSACTIONAL_IDS, "ongoing": ONGOING}
    marker = {"producer_id": UNKNOWN_PRODUCER + 1, "producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0}
    written = [
        Case(
            each.api,
            each.state,
            lambda world, fresh, build=each.fields: {"markers": [{**marker, **build(world, fresh)}]},  # type: ignore[misc]
        )
        for each in by_topic(ApiKey.WRITE_TXN_MARKERS, lambda world, topic: {"name": topic, "partition_indexes": [0]})
        if each.state in ("exists", "hidden", "missing")
    ]
    return [
        *_init(),
        *_add(),
        *by_name(ApiKey.END_TXN, TRANSACTIONAL_IDS, lambda name: {"transactional_id": name, **PRODUCER, "committed": True}),
        *_commit(),
        *written,
        *by_name(ApiKey.DESCRIBE_TRANSACTIONS, ids, lambda name: {"transactional_ids": [name]}),
        plain(ApiKey.DESCRIBE_TRANSACTIONS, "mixed", transactional_ids=list(ids.values())),
        plain(ApiKey.LIST_TRANSACTIONS, "all", state_filters=[], producer_id_filters=[]),
        plain(ApiKey.LIST_TRANSACTIONS, "ongoing", state_filters=["Ongoing"], producer_id_filters=[]),
    ]
