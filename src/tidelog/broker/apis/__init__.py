"""The one list of what a broker serves. ApiVersions, the reference page and the dispatcher are computed from it.

A row names an API, the versions that are complete, its handler, and, where it differs, the range that clients are told.
To add an API: definition, handler, row, test, changelog fragment.
"""

from __future__ import annotations

from tidelog.broker.api import Api
from tidelog.broker.apis import (
    acls,
    alter_configs,
    client_quotas,
    cluster,
    configs,
    consumer_groups,
    coordinators,
    features,
    fetch,
    group_offsets,
    groups,
    log_dirs,
    metadata,
    offsets,
    partitions,
    produce,
    producers,
    quorum,
    raft_voters,
    reassignments,
    scram,
    topics,
    transaction_admin,
    transactions,
    txn_markers,
    txn_offsets,
    versions,
)
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.fastpath import read_fetch, read_produce

API_TABLE: tuple[Api, ...] = (
    # Clients of librdkafka stop compressing where version 0 is not advertised (KAFKA-18659); a request below 3 is refused.
    Api(ApiKey.PRODUCE, (3, 13), produce.produce, advertised=(0, 13), read=read_produce),
    Api(ApiKey.FETCH, (4, 18), fetch.fetch, read=read_fetch),
    Api(ApiKey.LIST_OFFSETS, (1, 11), offsets.list_offsets),
    Api(ApiKey.METADATA, (0, 13), metadata.metadata, read=metadata.read),
    Api(ApiKey.OFFSET_COMMIT, (2, 10), group_offsets.offset_commit),
    Api(ApiKey.OFFSET_FETCH, (1, 10), group_offsets.offset_fetch),
    Api(ApiKey.FIND_COORDINATOR, (0, 6), coordinators.find_coordinator),
    Api(ApiKey.JOIN_GROUP, (0, 9), groups.join_group),
    Api(ApiKey.HEARTBEAT, (0, 4), groups.heartbeat),
    Api(ApiKey.LEAVE_GROUP, (0, 5), groups.leave_group),
    Api(ApiKey.SYNC_GROUP, (0, 5), groups.sync_group),
    Api(ApiKey.DESCRIBE_GROUPS, (0, 6), groups.describe_groups),
    Api(ApiKey.LIST_GROUPS, (0, 5), groups.list_groups),
    Api(ApiKey.API_VERSIONS, (0, 4), versions.api_versions),
    Api(ApiKey.CREATE_TOPICS, (2, 7), topics.create_topics, on_error=topics.create_topics_refused),
    Api(ApiKey.DELETE_TOPICS, (1, 6), topics.delete_topics, on_error=topics.delete_topics_refused),
    Api(ApiKey.DELETE_RECORDS, (0, 2), offsets.delete_records),
    # Version 6 carries two-phase commit and is unstable in Kafka, too.
    Api(ApiKey.INIT_PRODUCER_ID, (0, 5), transactions.init_producer_id, on_error=transactions.init_producer_id_refused),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, (2, 4), offsets.offset_for_leader_epoch),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, (0, 5), transactions.add_partitions_to_txn),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, (0, 4), transactions.add_offsets_to_txn),
    Api(ApiKey.END_TXN, (0, 5), transactions.end_txn),
    Api(ApiKey.WRITE_TXN_MARKERS, (1, 2), txn_markers.write_txn_markers),
    Api(ApiKey.TXN_OFFSET_COMMIT, (0, 5), txn_offsets.txn_offset_commit),
    Api(ApiKey.DESCRIBE_ACLS, (1, 3), acls.describe_acls),
    Api(ApiKey.CREATE_ACLS, (1, 3), acls.create_acls),
    Api(ApiKey.DELETE_ACLS, (1, 3), acls.delete_acls),
    Api(ApiKey.DELETE_GROUPS, (0, 2), groups.delete_groups),
    Api(ApiKey.OFFSET_DELETE, (0, 0), group_offsets.offset_delete),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, (0, 1), consumer_groups.consumer_group_heartbeat),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, (0, 1), consumer_groups.consumer_group_describe),
    Api(ApiKey.DESCRIBE_CONFIGS, (1, 4), configs.describe_configs),
    Api(ApiKey.ALTER_CONFIGS, (0, 2), alter_configs.alter_configs, on_error=alter_configs.alter_configs_refused),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, (1, 2), log_dirs.alter_replica_log_dirs),
    Api(ApiKey.DESCRIBE_LOG_DIRS, (1, 5), log_dirs.describe_log_dirs),
    Api(ApiKey.CREATE_PARTITIONS, (0, 3), partitions.create_partitions, on_error=partitions.create_partitions_refused),
    Api(ApiKey.ELECT_LEADERS, (0, 2), partitions.elect_leaders, on_error=partitions.elect_leaders_refused),
    Api(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (0, 1),
        alter_configs.incremental_alter_configs,
        on_error=alter_configs.incremental_alter_configs_refused,
    ),
    Api(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        (0, 1),
        reassignments.alter_partition_reassignments,
        on_error=reassignments.alter_partition_reassignments_refused,
    ),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, (0, 0), reassignments.list_partition_reassignments),
    Api(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        (0, 1),
        client_quotas.describe_client_quotas,
        on_error=client_quotas.describe_client_quotas_refused,
    ),
    Api(
        ApiKey.ALTER_CLIENT_QUOTAS,
        (0, 1),
        client_quotas.alter_client_quotas,
        on_error=client_quotas.alter_client_quotas_refused,
    ),
    Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, (0, 0), scram.describe_user_scram_credentials),
    Api(ApiKey.DESCRIBE_QUORUM, (0, 2), quorum.describe_quorum),
    Api(ApiKey.UPDATE_FEATURES, (0, 2), features.update_features, on_error=features.update_features_refused),
    Api(ApiKey.DESCRIBE_CLUSTER, (0, 2), cluster.describe_cluster),
    Api(ApiKey.DESCRIBE_PRODUCERS, (0, 0), producers.describe_producers),
    Api(ApiKey.UNREGISTER_BROKER, (0, 0), cluster.unregister_broker, on_error=cluster.unregister_broker_refused),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, (0, 0), transaction_admin.describe_transactions),
    Api(ApiKey.LIST_TRANSACTIONS, (0, 2), transaction_admin.list_transactions),
    Api(ApiKey.LIST_CONFIG_RESOURCES, (0, 1), alter_configs.list_config_resources),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, (0, 0), partitions.describe_topic_partitions),
    Api(ApiKey.ADD_RAFT_VOTER, (0, 1), raft_voters.add_raft_voter, on_error=raft_voters.add_raft_voter_refused),
    Api(ApiKey.REMOVE_RAFT_VOTER, (0, 0), raft_voters.remove_raft_voter, on_error=raft_voters.remove_raft_voter_refused),
)

APIS: dict[int, Api] = {row.key: row for row in API_TABLE}
"""The rows by their number on the wire."""
