"""The list of all APIs that a node serves; a row has all facts about an API (``broker.api``).

To add an API: a handler in ``broker/apis``, a row here (logins, ACLs, tokens: ``broker.security_table``), a test. The dispatcher,
ApiVersions, the reference page, quotas, the envelope, refusals and injected faults follow the row. Permissions are those of
Apache Kafka's brokers and controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.broker import controller_apis, envelope
from tidelog.broker.api import NOTHING, Api, by_resource, on_brokers, on_cluster, on_controllers
from tidelog.broker.apis.cluster import cluster, versions
from tidelog.broker.apis.groups import consumer_groups, find_coordinator, group_offsets, groups
from tidelog.broker.apis.records import fetch, offsets, produce
from tidelog.broker.apis.topics import metadata, topics
from tidelog.broker.apis.transactions import transactions, txn_markers, txn_offsets
from tidelog.broker.controller_apis import raft
from tidelog.broker.deferred import deferred
from tidelog.broker.quotas.limits import Kind
from tidelog.broker.refusals import each_and_whole, regular
from tidelog.broker.security_table import SECURITY_APIS
from tidelog.broker.share_table import SHARE_APIS
from tidelog.broker.streams_table import STREAMS_APIS
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.fastpath import read_fetch, read_produce

if TYPE_CHECKING:
    from tidelog.broker.apis.cluster import client_quotas, features, quorum, raft_voters
    from tidelog.broker.apis.records import producers
    from tidelog.broker.apis.topics import alter_configs, configs, log_dirs, partitions, reassignments
    from tidelog.broker.apis.transactions import transaction_admin
else:
    client_quotas, features, quorum, raft_voters = deferred("cluster", "client_quotas", "features", "quorum", "raft_voters")
    (producers,) = deferred("records", "producers")
    alter_configs, configs, log_dirs, partitions, reassignments = deferred(
        "topics", "alter_configs", "configs", "log_dirs", "partitions", "reassignments"
    )
    (transaction_admin,) = deferred("transactions", "transaction_admin")

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)


_ROWS = (
    Api(
        ApiKey.PRODUCE,
        (3, 13),
        # librdkafka clients stop compressing unless version 0 is advertised (KAFKA-18659); a request below 3 is refused.
        advertised=(0, 13),
        broker=produce.produce,
        read=read_produce,
        needs=by_resource((Op.WRITE, TRANSACTIONAL_ID), (Op.WRITE, TOPIC)),
        quota=Kind.PRODUCE,
        refuse=produce.refuse,
    ),
    Api(
        ApiKey.FETCH,
        (4, 18),
        broker=fetch.fetch,
        read=read_fetch,
        controller=raft,
        # A follower needs CLUSTER_ACTION, a consumer READ.
        needs=by_resource((Op.CLUSTER_ACTION, CLUSTER), (Op.READ, TOPIC)),
        controller_needs=on_cluster(Op.CLUSTER_ACTION),
        quota=Kind.FETCH,
        refuse=fetch.refuse,
    ),
    Api(ApiKey.LIST_OFFSETS, (1, 11), broker=offsets.list_offsets, needs=by_resource((Op.DESCRIBE, TOPIC))),
    Api(
        ApiKey.METADATA,
        (0, 13),
        broker=metadata.metadata,
        read=metadata.read,
        # CREATE for a topic that the answer creates.
        needs=by_resource((Op.DESCRIBE, TOPIC), (Op.CREATE, CLUSTER), (Op.CREATE, TOPIC)),
        refuse=metadata.refuse,
    ),
    Api(ApiKey.OFFSET_COMMIT, (2, 10), broker=group_offsets.offset_commit, needs=by_resource((Op.READ, GROUP), (Op.READ, TOPIC))),
    Api(
        ApiKey.OFFSET_FETCH,
        (1, 10),
        broker=group_offsets.offset_fetch,
        needs=by_resource((Op.DESCRIBE, GROUP), (Op.DESCRIBE, TOPIC)),
        refuse=regular(committed_offset=-1),
    ),
    Api(
        ApiKey.FIND_COORDINATOR,
        (0, 6),
        broker=find_coordinator.find_coordinator,
        needs=by_resource((Op.DESCRIBE, GROUP), (Op.DESCRIBE, TRANSACTIONAL_ID), (Op.CLUSTER_ACTION, CLUSTER)),
        refuse=regular(node_id=-1, port=-1),
    ),
    Api(ApiKey.JOIN_GROUP, (0, 9), broker=groups.join_group, needs=by_resource((Op.READ, GROUP))),
    Api(ApiKey.HEARTBEAT, (0, 4), broker=groups.heartbeat, needs=by_resource((Op.READ, GROUP))),
    Api(ApiKey.LEAVE_GROUP, (0, 5), broker=groups.leave_group, needs=by_resource((Op.READ, GROUP))),
    Api(ApiKey.SYNC_GROUP, (0, 5), broker=groups.sync_group, needs=by_resource((Op.READ, GROUP))),
    Api(ApiKey.DESCRIBE_GROUPS, (0, 6), broker=groups.describe_groups, needs=by_resource((Op.DESCRIBE, GROUP))),
    Api(ApiKey.LIST_GROUPS, (0, 5), broker=groups.list_groups, needs=by_resource((Op.DESCRIBE, CLUSTER), (Op.DESCRIBE, GROUP))),
    Api(ApiKey.API_VERSIONS, (0, 5), broker=versions.broker_api_versions, controller=versions.api_versions, needs=NOTHING),
    Api(
        ApiKey.CREATE_TOPICS,
        (2, 7),
        broker=topics.create_topics,
        controller=topics.create_topics,
        needs=by_resource((Op.CREATE, CLUSTER), (Op.CREATE, TOPIC), (Op.DESCRIBE_CONFIGS, TOPIC)),
        forwarded=True,
        quota=Kind.MUTATION,
    ),
    Api(
        ApiKey.DELETE_TOPICS,
        (1, 6),
        broker=topics.delete_topics,
        controller=topics.delete_topics,
        needs=by_resource((Op.DELETE, CLUSTER), (Op.DELETE, TOPIC), (Op.DESCRIBE, TOPIC)),
        forwarded=True,
        quota=Kind.MUTATION,
    ),
    Api(
        ApiKey.DELETE_RECORDS,
        (0, 2),
        broker=offsets.delete_records,
        needs=by_resource((Op.DELETE, TOPIC)),
        refuse=regular(low_watermark=-1),
    ),
    Api(
        ApiKey.INIT_PRODUCER_ID,
        # Version 6 carries two-phase commit and is unstable in Kafka, too.
        (0, 5),
        broker=transactions.init_producer_id,
        needs=by_resource((Op.WRITE, TRANSACTIONAL_ID), (Op.IDEMPOTENT_WRITE, CLUSTER), (Op.WRITE, TOPIC)),
        refuse=regular(producer_epoch=-1),
    ),
    Api(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        (2, 4),
        broker=offsets.offset_for_leader_epoch,
        needs=by_resource((Op.CLUSTER_ACTION, CLUSTER), (Op.DESCRIBE, TOPIC)),
    ),
    Api(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        (0, 5),
        broker=transactions.add_partitions_to_txn,
        needs=by_resource((Op.WRITE, TRANSACTIONAL_ID), (Op.WRITE, TOPIC), (Op.CLUSTER_ACTION, CLUSTER)),
        between_brokers_from=transactions.BATCHED_FROM,
    ),
    Api(
        ApiKey.ADD_OFFSETS_TO_TXN,
        (0, 4),
        broker=transactions.add_offsets_to_txn,
        needs=by_resource((Op.WRITE, TRANSACTIONAL_ID), (Op.READ, GROUP)),
    ),
    Api(ApiKey.END_TXN, (0, 5), broker=transactions.end_txn, needs=by_resource((Op.WRITE, TRANSACTIONAL_ID))),
    Api(
        ApiKey.WRITE_TXN_MARKERS,
        (1, 2),
        broker=txn_markers.write_txn_markers,
        # Either permission is enough.
        needs=by_resource((Op.ALTER, CLUSTER), (Op.CLUSTER_ACTION, CLUSTER)),
        between_brokers_from=0,
    ),
    Api(
        ApiKey.TXN_OFFSET_COMMIT,
        (0, 6),
        broker=txn_offsets.txn_offset_commit,
        needs=by_resource((Op.WRITE, TRANSACTIONAL_ID), (Op.READ, GROUP), (Op.READ, TOPIC)),
    ),
    Api(
        ApiKey.DESCRIBE_CONFIGS,
        (1, 4),
        broker=configs.describe_configs,
        controller=configs.describe_configs,
        needs=by_resource((Op.DESCRIBE_CONFIGS, CLUSTER), (Op.DESCRIBE_CONFIGS, TOPIC), (Op.DESCRIBE_CONFIGS, GROUP)),
    ),
    Api(
        ApiKey.ALTER_CONFIGS,
        (0, 2),
        broker=alter_configs.alter_configs,
        controller=alter_configs.alter_configs,
        needs=by_resource((Op.ALTER_CONFIGS, CLUSTER), (Op.ALTER_CONFIGS, TOPIC), (Op.ALTER_CONFIGS, GROUP)),
        forwarded=True,
        forwards_itself=True,
    ),
    Api(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        (1, 2),
        broker=log_dirs.alter_replica_log_dirs,
        needs=on_cluster(Op.ALTER),
        refuse=log_dirs.refuse_alter,
    ),
    Api(
        ApiKey.DESCRIBE_LOG_DIRS,
        (1, 5),
        broker=log_dirs.describe_log_dirs,
        needs=on_cluster(Op.DESCRIBE),
        refuse=log_dirs.refuse_describe,
    ),
    Api(
        ApiKey.CREATE_PARTITIONS,
        (0, 3),
        broker=partitions.create_partitions,
        controller=partitions.create_partitions,
        needs=by_resource((Op.ALTER, TOPIC)),
        forwarded=True,
        quota=Kind.MUTATION,
    ),
    Api(ApiKey.DELETE_GROUPS, (0, 3), broker=groups.delete_groups, needs=by_resource((Op.DELETE, GROUP))),
    Api(
        ApiKey.ELECT_LEADERS,
        (0, 2),
        broker=partitions.elect_leaders,
        controller=partitions.elect_leaders,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
        refuse=each_and_whole,
    ),
    Api(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (0, 1),
        broker=alter_configs.incremental_alter_configs,
        controller=alter_configs.incremental_alter_configs,
        needs=by_resource((Op.ALTER_CONFIGS, CLUSTER), (Op.ALTER_CONFIGS, TOPIC), (Op.ALTER_CONFIGS, GROUP)),
        # The levels of a controller's own loggers need CLUSTER_ACTION.
        controller_needs=by_resource(
            (Op.ALTER_CONFIGS, CLUSTER), (Op.ALTER_CONFIGS, TOPIC), (Op.ALTER_CONFIGS, GROUP), (Op.CLUSTER_ACTION, CLUSTER)
        ),
        forwarded=True,
        forwards_itself=True,
    ),
    Api(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        (0, 1),
        broker=reassignments.alter_partition_reassignments,
        controller=reassignments.alter_partition_reassignments,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
        refuse=each_and_whole,
    ),
    Api(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        (0, 0),
        broker=reassignments.list_partition_reassignments,
        controller=controller_apis.list_reassignments,
        needs=on_cluster(Op.DESCRIBE),
        forwarded=True,
    ),
    Api(
        ApiKey.OFFSET_DELETE, (0, 0), broker=group_offsets.offset_delete, needs=by_resource((Op.DELETE, GROUP), (Op.READ, TOPIC))
    ),
    Api(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        (0, 1),
        broker=client_quotas.describe_client_quotas,
        needs=on_cluster(Op.DESCRIBE_CONFIGS),
        refuse=regular(entries=None),
    ),
    Api(
        ApiKey.ALTER_CLIENT_QUOTAS,
        (0, 1),
        broker=client_quotas.alter_client_quotas,
        controller=client_quotas.alter_client_quotas,
        needs=on_cluster(Op.ALTER_CONFIGS),
        forwarded=True,
    ),
    Api(ApiKey.VOTE, (0, 2), controller=raft, needs=on_cluster(Op.CLUSTER_ACTION)),
    Api(ApiKey.BEGIN_QUORUM_EPOCH, (0, 1), controller=raft, needs=on_cluster(Op.CLUSTER_ACTION)),
    Api(ApiKey.END_QUORUM_EPOCH, (0, 1), controller=raft, needs=on_cluster(Op.CLUSTER_ACTION)),
    Api(
        ApiKey.DESCRIBE_QUORUM,
        (0, 2),
        broker=quorum.describe_quorum,
        controller=quorum.describe_quorum_here,
        needs=on_cluster(Op.DESCRIBE),
        forwarded=True,
        not_active=ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ),
    Api(ApiKey.ALTER_PARTITION, (2, 3), controller=controller_apis.alter_partition, needs=on_cluster(Op.CLUSTER_ACTION)),
    Api(
        ApiKey.UPDATE_FEATURES,
        (0, 2),
        broker=features.update_features,
        controller=features.update_features,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
    ),
    Api(ApiKey.ENVELOPE, (0, 0), controller=envelope.envelope, needs=on_cluster(Op.CLUSTER_ACTION)),
    Api(ApiKey.FETCH_SNAPSHOT, (0, 1), controller=raft, needs=on_cluster(Op.CLUSTER_ACTION)),
    Api(
        ApiKey.DESCRIBE_CLUSTER,
        (0, 2),
        broker=cluster.describe_cluster,
        controller=controller_apis.describe_controllers,
        # DESCRIBE is required only for the authorized operations in the answer.
        needs=by_resource((Op.DESCRIBE, CLUSTER)),
        controller_needs=on_cluster(Op.ALTER),
    ),
    Api(ApiKey.DESCRIBE_PRODUCERS, (0, 0), broker=producers.describe_producers, needs=by_resource((Op.READ, TOPIC))),
    Api(ApiKey.BROKER_REGISTRATION, (0, 4), controller=controller_apis.broker_registration, needs=on_cluster(Op.CLUSTER_ACTION)),
    Api(ApiKey.BROKER_HEARTBEAT, (0, 2), controller=controller_apis.broker_heartbeat, needs=on_cluster(Op.CLUSTER_ACTION)),
    Api(
        ApiKey.UNREGISTER_BROKER,
        (0, 0),
        broker=cluster.unregister_broker,
        controller=cluster.unregister_broker,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
    ),
    Api(
        ApiKey.DESCRIBE_TRANSACTIONS,
        (0, 0),
        broker=transaction_admin.describe_transactions,
        needs=by_resource((Op.DESCRIBE, TRANSACTIONAL_ID), (Op.DESCRIBE, TOPIC)),
    ),
    Api(
        ApiKey.LIST_TRANSACTIONS,
        (0, 2),
        broker=transaction_admin.list_transactions,
        needs=by_resource((Op.DESCRIBE, TRANSACTIONAL_ID)),
    ),
    Api(
        ApiKey.ALLOCATE_PRODUCER_IDS,
        (0, 0),
        controller=controller_apis.allocate_producer_ids,
        needs=on_cluster(Op.CLUSTER_ACTION),
    ),
    Api(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        (0, 1),
        broker=consumer_groups.consumer_group_heartbeat,
        needs=by_resource((Op.READ, GROUP), (Op.DESCRIBE, TOPIC)),
    ),
    Api(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        (0, 1),
        broker=consumer_groups.consumer_group_describe,
        needs=by_resource((Op.DESCRIBE, GROUP), (Op.DESCRIBE, TOPIC)),
    ),
    Api(
        ApiKey.CONTROLLER_REGISTRATION,
        (0, 0),
        controller=controller_apis.controller_registration,
        needs=on_cluster(Op.CLUSTER_ACTION),
    ),
    Api(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        (0, 0),
        controller=controller_apis.assign_replicas_to_dirs,
        needs=on_cluster(Op.CLUSTER_ACTION),
    ),
    Api(ApiKey.LIST_CONFIG_RESOURCES, (0, 1), broker=alter_configs.list_config_resources, needs=on_cluster(Op.DESCRIBE_CONFIGS)),
    Api(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        (0, 0),
        broker=partitions.describe_topic_partitions,
        needs=by_resource((Op.DESCRIBE, TOPIC)),
    ),
    Api(
        ApiKey.ADD_RAFT_VOTER,
        (0, 1),
        broker=raft_voters.add_raft_voter,
        controller=raft,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
    ),
    Api(
        ApiKey.REMOVE_RAFT_VOTER,
        (0, 0),
        broker=raft_voters.remove_raft_voter,
        controller=raft,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
    ),
    Api(ApiKey.UPDATE_RAFT_VOTER, (0, 0), controller=raft, needs=on_cluster(Op.CLUSTER_ACTION)),
)

API_TABLE: tuple[Api, ...] = tuple(sorted((*_ROWS, *SECURITY_APIS, *SHARE_APIS, *STREAMS_APIS), key=lambda row: row.key))
"""The rows of all APIs that are served, by key."""

BROKER_APIS = on_brokers(API_TABLE)
CONTROLLER_APIS = on_controllers(API_TABLE)

RAFT_APIS = frozenset(row.key for row in API_TABLE if row.controller is raft)
"""Answered by the Raft machine of the quorum's leader."""
