"""What only nodes send: the quorum and the controller's APIs. Requests name another cluster or an unknown broker, so that nothing
changes."""

from __future__ import annotations

from typing import Any

from tests.interop.nodes import FEATURES
from tests.security_matrix.case import CONTROLLER, UNKNOWN_ID, Case, World, plain
from tests.security_matrix.cases.cluster import METADATA_TOPIC
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.default_principal_data import DefaultPrincipalData
from tidelog.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.structure import Message

WRONG_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
METADATA_ID = b"\0" * 15 + b"\1"
ONLY = {"listeners": (CONTROLLER,)}
LEVELS = ("metadata.version", "kraft.version", *FEATURES)
STRANGER = {"broker_id": 77, "broker_epoch": 1}


def _raft() -> list[Case]:
    def topics(**partition: Any) -> list[dict[str, Any]]:
        return [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0, **partition}]}]

    vote = topics(replica_epoch=1, replica_id=7, last_offset_epoch=0, last_offset=0)
    leader = topics(leader_id=7, leader_epoch=1)
    fetched = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    fetch = {"topic": METADATA_TOPIC, "topic_id": METADATA_ID, "partitions": [fetched]}
    common = {"max_wait_ms": 0, "min_bytes": 0, "cluster_id": WRONG_CLUSTER}
    snapshot = {"partition": 0, "current_leader_epoch": 1, "snapshot_id": {"end_offset": 1, "epoch": 1}, "position": 0}
    voter = {"voter_id": 7, "voter_directory_id": b"\x07" * 16, "listeners": []}
    return [
        plain(ApiKey.FETCH, "metadata, another cluster", **common, topics=[fetch], options={**ONLY, "versions": (4, 12, 18)}),
        plain(ApiKey.VOTE, "another cluster", cluster_id=WRONG_CLUSTER, topics=vote, options=ONLY),
        plain(ApiKey.BEGIN_QUORUM_EPOCH, "another cluster", cluster_id=WRONG_CLUSTER, topics=leader, options=ONLY),
        plain(ApiKey.END_QUORUM_EPOCH, "another cluster", cluster_id=WRONG_CLUSTER, topics=leader, options=ONLY),
        plain(
            ApiKey.FETCH_SNAPSHOT,
            "another cluster",
            cluster_id=WRONG_CLUSTER,
            topics=[{"name": METADATA_TOPIC, "partitions": [snapshot]}],
            options=ONLY,
        ),
        plain(ApiKey.UPDATE_RAFT_VOTER, "another cluster", cluster_id=WRONG_CLUSTER, **voter, options=ONLY),
    ]


def _brokers() -> list[Case]:
    registration = {"broker_id": 77, "incarnation_id": b"\x05" * 16, "log_dirs": [b"\x06" * 16]}
    isr = {"partition_index": 0, "new_isr": [77], "new_isr_with_epochs": [{"broker_id": 77, "broker_epoch": 1}]}
    directory = {"id": b"\x06" * 16, "topics": [{"topic_id": UNKNOWN_ID, "partitions": [{"partition_index": 0}]}]}
    return [
        plain(ApiKey.BROKER_REGISTRATION, "another cluster", **registration, cluster_id=WRONG_CLUSTER, options=ONLY),
        plain(ApiKey.BROKER_HEARTBEAT, "unknown broker", **STRANGER, current_metadata_offset=1, options=ONLY),
        plain(
            ApiKey.ALTER_PARTITION,
            "unknown broker",
            **STRANGER,
            topics=[{"topic_id": UNKNOWN_ID, "partitions": [isr]}],
            options=ONLY,
        ),
        plain(ApiKey.ALLOCATE_PRODUCER_IDS, "unknown broker", **STRANGER, options=ONLY),
        plain(ApiKey.ASSIGN_REPLICAS_TO_DIRS, "unknown broker", **STRANGER, directories=[directory], options=ONLY),
        plain(
            ApiKey.CONTROLLER_REGISTRATION,
            "unknown controller",
            controller_id=77,
            incarnation_id=b"\x05" * 16,
            features=[{"name": name, "min_supported_version": 0, "max_supported_version": 100} for name in LEVELS],
            options=ONLY,
        ),
    ]


def _envelopes() -> list[Case]:
    def packed(key: ApiKey, version: int, request: Message) -> bytes:
        return encode_request(RequestHeader(key, version, 1, "matrix"), request)[4:]

    listing = packed(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None))
    metadata = packed(ApiKey.METADATA, 13, MetadataRequest(topics=[]))
    found = []
    for state, data, user in (
        ("for a user with rights", listing, "all"),
        ("for a user without rights", listing, "none"),
        ("not forwardable", metadata, "all"),
    ):

        def fields(world: World, _: str, data: bytes = data, user: str = user) -> dict[str, Any]:
            principal = b"\0\0" + DefaultPrincipalData("User", user, False).encode(0)
            return {"request_data": data, "request_principal": principal, "client_host_address": bytes([127, 0, 0, 1])}

        found.append(Case(ApiKey.ENVELOPE, state, fields, listeners=(CONTROLLER,)))
    found.append(
        plain(
            ApiKey.ENVELOPE,
            "bad principal",
            request_data=listing,
            request_principal=b"\0\0\xff",
            client_host_address=bytes([127, 0, 0, 1]),
            options=ONLY,
        )
    )
    return found


def cases() -> list[Case]:
    """All of the nodes'."""
    return [*_raft(), *_brokers(), *_envelopes()]
