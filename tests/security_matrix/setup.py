"""What exists before the first cell: topics, groups, transactions, ACLs. The same requests to either kind of node."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from tests.security_matrix.case import GROUPS, LAST_IN_4_3, TRANSACTIONAL_IDS, Cell, World
from tests.security_matrix.cases import groups, shares, tokens
from tests.security_matrix.cases.records import batch
from tests.security_matrix.cases.transactions import ONGOING
from tests.security_matrix.connection import Connection
from tests.security_matrix.principals import PRINCIPALS
from tests.security_matrix.requests import request
from tidelog.protocol.api_keys import API_FACTS, ApiKey

LIMIT_S = 60
TOPICS = ("open-t", "hidden-t", "open-idempotent")
TOPICS_AT_ONCE = 100
LONG_MS = 1_800_000
OPEN_TRANSACTION_MS = 900_000


class Administrator:
    """Sends requests as a super user."""

    def __init__(self, port: int) -> None:
        self._connection = Connection(port, None)

    def ask(self, key: ApiKey, version: int | None = None, **fields: Any) -> Any:
        """The answer, in the newest stable version that both kinds of node serve if none is given."""
        newest = min(API_FACTS[key].stable_max, LAST_IN_4_3.get(key, API_FACTS[key].stable_max))
        chosen = newest if version is None else version
        return self._connection.ask(key, chosen, request(key, chosen, fields))

    def until(self, done: Callable[[Any], bool], key: ApiKey, version: int | None = None, **fields: Any) -> Any:
        """The first answer that satisfies ``done``. AssertionError when there is none in time."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            answer = self.ask(key, version, **fields)
            if done(answer):
                return answer
            assert time.monotonic() < deadline, f"{key.name} is still answered with {answer}"
            time.sleep(0.02)

    def create(self, topics: list[str]) -> None:
        """Create topics of one partition and wait until their leaders are known."""
        for start in range(0, len(topics), TOPICS_AT_ONCE):
            some = topics[start : start + TOPICS_AT_ONCE]
            wanted = [
                {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []} for name in some
            ]
            answer = self.ask(ApiKey.CREATE_TOPICS, topics=wanted, timeout_ms=30_000)
            assert not any(each.error_code for each in answer.topics), answer
            self.ids(some)

    def ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        """The ids of topics that have leaders."""
        named = [{"name": name} for name in topics]
        answer = self.until(
            lambda answer: not any(each.error_code or each.partitions[0].error_code for each in answer.topics),
            ApiKey.METADATA,
            topics=named,
            allow_auto_topic_creation=False,
        )
        return {each.name: bytes(each.topic_id) for each in answer.topics}

    def commit(self, group: str, topics: Iterable[str]) -> None:
        """An offset of each topic; the group exists then."""
        partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        named = [{"name": name, "partitions": [partition]} for name in topics]
        self.until(
            lambda answer: not any(each.error_code for topic in answer.topics for each in topic.partitions),
            ApiKey.OFFSET_COMMIT,
            9,
            group_id=group,
            topics=named,
        )

    def share(self, group: str, topics: Iterable[str]) -> None:
        """A share group without members that begins each topic at offset 0."""
        start = [{"partition_index": 0, "start_offset": 0}]
        answer = self.ask(
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            group_id=group,
            topics=[{"topic_name": name, "partitions": start} for name in topics],
        )
        assert not answer.error_code and not any(each.error_code for one in answer.responses for each in one.partitions), answer


def prepare(administrator: Administrator) -> World:
    """All resources but those of single cells."""
    administrator.create(list(TOPICS))
    for kind, key in ((0, "any"), (1, "any")):
        administrator.until(
            lambda answer: answer.coordinators[0].error_code == 0,
            ApiKey.FIND_COORDINATOR,
            6,
            key_type=kind,
            coordinator_keys=[key],
        )
    internal = ("__consumer_offsets", "__transaction_state")
    world = World(administrator.ids((*TOPICS, *internal)))
    for topic in TOPICS:
        data = {"name": topic, "topic_id": world.id(topic), "partition_data": [{"index": 0, "records": batch()}]}
        administrator.until(
            lambda answer: answer.responses[0].partition_responses[0].error_code == 0,
            ApiKey.PRODUCE,
            acks=1,
            timeout_ms=10_000,
            topic_data=[data],
        )
    for group in (GROUPS["exists"], GROUPS["hidden"], groups.COMMITTED):
        administrator.commit(group, ("open-t", "hidden-t"))
    _join_groups(administrator)
    _join_share_groups(administrator)
    _join_streams_groups(administrator)
    _keep_share_states(administrator, world)
    _open_transactions(administrator)
    world.topic_ids |= administrator.ids(("__share_group_state",))
    return world


def make_tokens(port: int) -> None:
    """A delegation token for each owner; tokens are given out only to clients that log in."""
    root = Connection(port, "root")
    deadline = time.monotonic() + LIMIT_S
    for name in tokens.OWNERS.values():
        fields = {"owner_principal_type": "User", "owner_principal_name": name, "renewers": [], "max_lifetime_ms": -1}
        made = root.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request(ApiKey.CREATE_DELEGATION_TOKEN, 3, fields))
        assert made.error_code == 0, made
    listing = request(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None})
    while len(root.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, listing).tokens) < len(tokens.OWNERS):
        assert time.monotonic() < deadline, "the broker does not know the tokens"
        time.sleep(0.02)
    root.close()


def prepare_cells(administrator: Administrator, world: World, cells: Iterable[Cell]) -> None:
    """The resources of single cells."""
    topics: list[str] = []
    for cell in cells:
        topics += [f"{prefix}{cell.fresh}" for prefix in cell.case.prepared_topics]
        for prefix in cell.case.prepared_groups:
            administrator.commit(f"{prefix}{cell.fresh}", ("open-t", "hidden-t"))
        for prefix in cell.case.prepared_shares:
            administrator.share(f"{prefix}{cell.fresh}", ("open-t", "hidden-t"))
    administrator.create(topics)
    for start in range(0, len(topics), TOPICS_AT_ONCE):
        world.topic_ids |= administrator.ids(topics[start : start + TOPICS_AT_ONCE])


def grant(administrator: Administrator, ports: dict[str, int]) -> None:
    """The ACLs of all users; returns when the node obeys them on all listeners."""
    names = {"pattern_type": "resource_pattern_type"}
    creations = [
        {names.get(key, key): value for key, value in asdict(acl).items()}
        for principal in PRINCIPALS.values()
        for acl in principal.acls
    ]
    answer = administrator.ask(ApiKey.CREATE_ACLS, creations=creations)
    failed = [each.error_code for each in answer.results if each.error_code]
    assert not failed, f"CreateAcls is answered with {sorted(set(failed))}"
    last = Connection(ports["controller"], "but-transactional-id-two-phase-commit")
    deadline = time.monotonic() + LIMIT_S
    listing = request(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None})
    while last.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, listing).error_code:
        assert time.monotonic() < deadline, "the controller does not obey the ACLs"
        time.sleep(0.02)
    last.close()
    newest = Connection(ports["broker"], "but-transactional-id-two-phase-commit")
    described = request(ApiKey.DESCRIBE_ACLS, 3, {**_EVERY_ACL})
    while newest.ask(ApiKey.DESCRIBE_ACLS, 3, described).error_code:
        assert time.monotonic() < deadline, "the broker does not obey the ACLs"
        time.sleep(0.02)
    newest.close()


_EVERY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def _join_streams_groups(administrator: Administrator) -> None:
    """Two streams groups with one member each, which has tasks; sessions outlast the run."""
    for group, topic in {groups.STREAMED: "open-t", groups.STREAMED_HIDDEN: "hidden-t"}.items():
        administrator.until(
            lambda answer: answer.error_code == 0 and bool(answer.active_tasks),
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            **groups.streams_member(group, topic),
        )


def _join_share_groups(administrator: Administrator) -> None:
    """Three share groups with one member each, which has partitions; sessions outlast the run. One without members."""
    for group, topics in {
        shares.SHARED: ["open-t"],
        shares.SHARED_HIDDEN: ["open-t", "hidden-t"],
        shares.HIDDEN_SHARED: ["open-t"],
    }.items():
        member: dict[str, Any] = {"group_id": group, "member_id": shares.MEMBER}
        joined = administrator.until(
            lambda answer: answer.error_code == 0,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            **member,
            member_epoch=0,
            subscribed_topic_names=topics,
        )
        epoch, assigned = joined.member_epoch, joined.assignment
        deadline = time.monotonic() + LIMIT_S
        while assigned is None or len(assigned.topic_partitions) < len(topics):
            assert time.monotonic() < deadline, f"{group} has {assigned}"
            time.sleep(0.1)
            beat = administrator.ask(ApiKey.SHARE_GROUP_HEARTBEAT, **member, member_epoch=epoch, subscribed_topic_names=topics)
            assert beat.error_code == 0, beat
            epoch, assigned = beat.member_epoch, beat.assignment
    left: dict[str, Any] = {"group_id": shares.SHARED_EMPTY, "member_id": shares.MEMBER}
    for epoch in (0, -1):
        answer = administrator.ask(ApiKey.SHARE_GROUP_HEARTBEAT, **left, member_epoch=epoch, subscribed_topic_names=["open-t"])
        assert answer.error_code == 0, answer


def _keep_share_states(administrator: Administrator, world: World) -> None:
    """States of share groups without members; those that requests between brokers name have been read by a leader."""
    for group in (shares.STATED, shares.HIDDEN_STATED, *map(shares.of_state, shares.STATE_APIS)):
        administrator.share(group, ("open-t", "hidden-t"))
    for group in map(shares.of_state, shares.STATE_APIS):
        partition = {"partition": 0, "leader_epoch": shares.READ_EPOCH}
        topics = [{"topic_id": world.id("open-t"), "partitions": [partition]}]
        answer = administrator.ask(ApiKey.READ_SHARE_GROUP_STATE, group_id=group, topics=topics)
        assert not answer.results[0].partitions[0].error_code, answer


def _join_groups(administrator: Administrator) -> None:
    """A classic group and three consumer groups with one member each; sessions outlast the run."""
    joining: dict[str, Any] = {
        "group_id": groups.CLASSIC,
        "session_timeout_ms": LONG_MS,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": groups.SUBSCRIPTION}],
    }
    named = administrator.until(lambda answer: answer.error_code == 79, ApiKey.JOIN_GROUP, 9, **joining, member_id="")
    joined = administrator.until(
        lambda answer: answer.error_code == 0, ApiKey.JOIN_GROUP, 9, **joining, member_id=named.member_id
    )
    member = {"generation_id": joined.generation_id, "member_id": joined.member_id, "group_id": groups.CLASSIC}
    synced = administrator.ask(
        ApiKey.SYNC_GROUP,
        5,
        **member,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": joined.member_id, "assignment": b""}],
    )
    assert synced.error_code == 0, synced
    subscriptions = {
        groups.CONSUMER: ["open-t"],
        groups.CONSUMER_HIDDEN: ["open-t", "hidden-t"],
        groups.HIDDEN_CONSUMER: ["open-t"],
    }
    for group, topics in subscriptions.items():
        member = {"group_id": group, "member_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
        answer = administrator.until(
            lambda answer: answer.error_code == 0,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            **member,
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=topics,
            topic_partitions=[],
        )
        if not (answer.assignment and answer.assignment.topic_partitions):
            administrator.until(
                lambda answer: bool(answer.assignment and answer.assignment.topic_partitions),
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                **member,
                member_epoch=answer.member_epoch,
            )


def _open_transactions(administrator: Administrator) -> None:
    for name in (TRANSACTIONAL_IDS["exists"], TRANSACTIONAL_IDS["hidden"], ONGOING):
        producer = administrator.until(
            lambda answer: answer.error_code == 0,
            ApiKey.INIT_PRODUCER_ID,
            5,
            transactional_id=name,
            transaction_timeout_ms=OPEN_TRANSACTION_MS,
        )
    administrator.until(
        lambda answer: (
            not any(
                each.partition_error_code for topic in answer.results_by_topic_v3_and_below for each in topic.results_by_partition
            )
        ),
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id=ONGOING,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[{"name": name, "partitions": [0]} for name in ("open-t", "hidden-t")],
    )
