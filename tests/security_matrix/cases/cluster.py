"""The cluster: ACLs, quotas, SCRAM users, features, quorum, versions."""

from __future__ import annotations

from tests.security_matrix.case import Case, plain
from tidelog.protocol.api_keys import ApiKey

ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
METADATA_TOPIC = "__cluster_metadata"


def _acls() -> list[Case]:
    creation = {"resource_type": 2, "resource_pattern_type": 3, "host": "*", "operation": 3, "permission_type": 3}
    made = {**creation, "resource_name": "made", "principal": "User:made"}
    bad = {**creation, "resource_name": "made", "principal": "no colon"}
    wrong_cluster = {**made, "resource_type": 4}
    return [
        plain(ApiKey.DESCRIBE_ACLS, "of a user", **ANY_ACL, principal_filter="User:topic-read"),
        plain(ApiKey.DESCRIBE_ACLS, "of nobody", **ANY_ACL, principal_filter="User:nobody"),
        plain(ApiKey.DESCRIBE_ACLS, "bad filter", **{**ANY_ACL, "operation": 0}, principal_filter="User:nobody"),
        plain(ApiKey.CREATE_ACLS, "valid", creations=[made]),
        plain(ApiKey.CREATE_ACLS, "valid and bad", creations=[made, bad, wrong_cluster]),
        plain(ApiKey.CREATE_ACLS, "none", creations=[]),
        plain(ApiKey.DELETE_ACLS, "no match", filters=[{**ANY_ACL, "principal_filter": "User:nobody"}]),
        plain(ApiKey.DELETE_ACLS, "bad filter", filters=[{**ANY_ACL, "operation": 0, "principal_filter": "User:nobody"}]),
        plain(ApiKey.DELETE_ACLS, "none", filters=[]),
    ]


def _users() -> list[Case]:
    entity = [{"entity_type": "user", "entity_name": "someone"}]
    quota = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}]}
    component = {"entity_type": "user", "match_type": 0, "match": "someone"}
    weak = {"name": "someone", "mechanism": 1, "iterations": 1, "salt": b"salt", "salted_password": b"password"}
    return [
        plain(ApiKey.DESCRIBE_CLIENT_QUOTAS, "of a user", components=[component], strict=True),
        plain(ApiKey.DESCRIBE_CLIENT_QUOTAS, "all", components=[], strict=False),
        plain(ApiKey.ALTER_CLIENT_QUOTAS, "validated", entries=[quota], validate_only=True),
        plain(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "missing", users=[{"name": "someone"}]),
        plain(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "named twice", users=[{"name": "someone"}] * 2),
        plain(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "all", users=None, options={"always_answered": False}),
        plain(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "missing", deletions=[{"name": "someone", "mechanism": 1}], upsertions=[]),
        plain(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "weak", deletions=[], upsertions=[weak]),
    ]


def _nodes() -> list[Case]:
    wrong = "AAAAAAAAAAAAAAAAAAAAAA"
    quorum = [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]
    stranger = [{"topic_name": "open-t", "partitions": [{"partition_index": 0}]}]
    feature = {"feature": "no.such.feature", "max_version_level": 1, "allow_downgrade": False, "upgrade_type": 1}
    voter = {"cluster_id": wrong, "voter_id": 7, "voter_directory_id": b"\x07" * 16}
    listeners = [{"name": "CONTROLLER", "host": "localhost", "port": 1}]
    asked = {"include_cluster_authorized_operations": True}
    return [
        plain(ApiKey.DESCRIBE_CLUSTER, "brokers", **asked, endpoint_type=1),
        plain(ApiKey.DESCRIBE_CLUSTER, "brokers, operations not asked", endpoint_type=1),
        plain(ApiKey.DESCRIBE_CLUSTER, "controllers", **asked, endpoint_type=2, options={"versions": (1, 2)}),
        plain(ApiKey.DESCRIBE_CLUSTER, "unknown endpoint type", **asked, endpoint_type=9, options={"versions": (1, 2)}),
        plain(ApiKey.DESCRIBE_QUORUM, "metadata", topics=quorum),
        plain(ApiKey.DESCRIBE_QUORUM, "another topic", topics=stranger),
        plain(ApiKey.UPDATE_FEATURES, "unknown feature", timeout_ms=10_000, feature_updates=[feature], validate_only=True),
        plain(ApiKey.UNREGISTER_BROKER, "missing", broker_id=77),
        plain(ApiKey.ADD_RAFT_VOTER, "another cluster", **voter, timeout_ms=1000, listeners=listeners),
        plain(ApiKey.REMOVE_RAFT_VOTER, "another cluster", **voter),
        plain(ApiKey.API_VERSIONS, "again", client_software_name="matrix", client_software_version="1"),
        plain(ApiKey.SASL_HANDSHAKE, "again", mechanism="PLAIN"),
        plain(ApiKey.SASL_AUTHENTICATE, "again", auth_bytes=b"\0none\0secret"),
    ]


def cases() -> list[Case]:
    """All of the cluster's."""
    return [*_acls(), *_users(), *_nodes()]
