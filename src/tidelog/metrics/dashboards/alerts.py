"""The alert rules: what is wrong, since when it counts, how urgent it is, and what to do.

``critical`` wakes a person: records cannot be written or read, or may be lost. ``warning`` is for the next working day. A rule
asks only of the job that ``$job`` stands for. What all nodes say of the whole cluster is taken once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """How urgent an alert is."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule. ``since`` is how long ``expr`` has to hold, as Prometheus writes durations; ``todo`` is the first step."""

    name: str
    expr: str
    since: str
    severity: Severity
    summary: str
    todo: str


_CRITICAL: Final = Severity.CRITICAL
_WARNING: Final = Severity.WARNING
_JOB: Final = 'job="$job"'
_LAG: Final = f"max by (consumergroup, topic, partition) (kafka_consumergroup_lag{{{_JOB}}})"
_READ: Final = f"max by (consumergroup, topic, partition) (kafka_consumergroup_current_offset{{{_JOB}}})"
_BEHIND_AND_STILL: Final = (
    f"(sum by (consumergroup, topic) ({_LAG}) > 0) and sum by (consumergroup, topic) (changes({_READ}[15m:1m])) == 0"
)
_LOST_LETTERS: Final = "kafka_server_sharegroupmetrics_deadletterqueuefailedproducerequests_total"

ALERTS: Final = (
    Alert(
        "TidelogNodeDown",
        f"up{{{_JOB}}} == 0",
        "1m",
        _CRITICAL,
        "Prometheus cannot scrape {{ $labels.instance }}",
        "Look whether the process runs and what its log says last. The other nodes lead its partitions meanwhile.",
    ),
    Alert(
        "TidelogPartitionsWithoutLeader",
        f"max(kafka_controller_kafkacontroller_offlinepartitionscount{{{_JOB}}}) > 0",
        "1m",
        _CRITICAL,
        "{{ $value }} partitions have no leader and can be neither written nor read",
        "kafka-topics --describe --unavailable-partitions names them. Start the brokers that hold their replicas in sync.",
    ),
    Alert(
        "TidelogNoActiveController",
        f"sum(kafka_controller_kafkacontroller_activecontrollercount{{{_JOB}}}) != 1",
        "1m",
        _CRITICAL,
        "{{ $value }} nodes are the active controller instead of 1",
        "kafka-metadata-quorum describe --status shows the voters. Without a majority of them nothing in the cluster can change.",
    ),
    Alert(
        "TidelogBelowMinIsr",
        f"sum(kafka_server_replicamanager_underminisrpartitioncount{{{_JOB}}}) > 0",
        "1m",
        _CRITICAL,
        "{{ $value }} partitions have fewer replicas in sync than min.insync.replicas, and refuse producers with acks=all",
        "kafka-topics --describe --under-min-isr-partitions names them. Start the brokers that are missing.",
    ),
    Alert(
        "TidelogUnderReplicated",
        f"sum by (instance) (kafka_server_replicamanager_underreplicatedpartitions{{{_JOB}}}) > 0",
        "10m",
        _WARNING,
        "{{ $value }} partitions that {{ $labels.instance }} leads have replicas out of sync",
        "kafka-topics --describe --under-replicated-partitions names them. A broker is down, slow, or its disk is.",
    ),
    Alert(
        "TidelogBrokerFenced",
        f"max(kafka_controller_kafkacontroller_fencedbrokercount{{{_JOB}}}) > 0",
        "5m",
        _WARNING,
        "{{ $value }} brokers are registered and fenced",
        "Its heartbeats do not reach the controller: look at its log. kafka-cluster unregister removes one that will not return.",
    ),
    Alert(
        "TidelogUncleanElection",
        f"sum(increase(kafka_controller_controllerstats_uncleanleaderelections_total{{{_JOB}}}[10m])) > 0",
        "0m",
        _CRITICAL,
        "A replica that was not in sync became a leader: acknowledged records may be lost",
        "The controller's log names the partitions. Compare what consumers have with what the new leader has.",
    ),
    Alert(
        "TidelogLogDirOffline",
        f"sum by (instance) (kafka_log_logmanager_offlinelogdirectorycount{{{_JOB}}}) > 0",
        "0m",
        _CRITICAL,
        "{{ $value }} log dirs of {{ $labels.instance }} have failed",
        "The node's log has the disk's error. Replace the disk and restart the node: its replicas are copied from the others.",
    ),
    Alert(
        "TidelogDamagedLog",
        f"sum by (instance) (tidelog_log_damaged_ranges{{{_JOB}}}) > 0",
        "15m",
        _CRITICAL,
        "{{ $value }} places in logs of {{ $labels.instance }} are damaged, and no replica has mended them",
        "The node's log names file and offsets. See the chapter on damage in the operations guide.",
    ),
    Alert(
        "TidelogDiskNearlyFull",
        f"min by (instance, log_dir) (tidelog_log_dir_free_bytes{{{_JOB}}}) < 20e9",
        "5m",
        _WARNING,
        "{{ $value | humanize1024 }}B are free in {{ $labels.log_dir }} of {{ $labels.instance }}",
        "Shorten retention, move replicas with tidelog rebalance, or give it a larger disk: a full one fails.",
    ),
    Alert(
        "TidelogDiskFullInADay",
        f"predict_linear(tidelog_log_dir_free_bytes{{{_JOB}}}[6h], 86400) < 0",
        "30m",
        _WARNING,
        "At this rate {{ $labels.log_dir }} of {{ $labels.instance }} is full within a day",
        "Look at which topics grow on the dashboard of topics, and at their retention.",
    ),
    Alert(
        "TidelogReplicaBehind",
        f"max by (instance) (kafka_server_replicafetchermanager_maxlag{{{_JOB}}}) > 10000",
        "15m",
        _WARNING,
        "A replica on {{ $labels.instance }} lacks {{ $value }} records",
        "It copies more slowly than the leader takes in: look at its disk, its CPU, and at replication quotas.",
    ),
    Alert(
        "TidelogReplicaCannotAppend",
        f"max by (instance) (kafka_server_replicafetchermanager_failedpartitionscount{{{_JOB}}}) > 0",
        "5m",
        _CRITICAL,
        "{{ $value }} replicas on {{ $labels.instance }} cannot append what their leader sends",
        "The node's log names the partitions and why.",
    ),
    Alert(
        "TidelogMetadataBehind",
        f"max by (instance) (scalar(max(kafka_server_raftmetrics_high_watermark{{{_JOB}}}))"
        f" - kafka_server_raftmetrics_high_watermark{{{_JOB}}}) > 1000",
        "5m",
        _WARNING,
        "{{ $labels.instance }} has not seen {{ $value }} committed records of the metadata",
        "It does not reach the quorum, or is too busy: look at its log and its event loop.",
    ),
    Alert(
        "TidelogEventLoopBusy",
        f"min by (instance) (kafka_network_socketserver_networkprocessoravgidle_percent{{{_JOB}}}) < 0.1",
        "10m",
        _WARNING,
        "The event loop of {{ $labels.instance }} is busy for more than nine tenths of the time",
        "A node is one core: spread its leaders with tidelog rebalance, or add a node.",
    ),
    Alert(
        "TidelogProduceSlow",
        f'max by (instance) (kafka_network_requestmetrics_totaltimems{{{_JOB},request="Produce",quantile="0.99"}}) > 500',
        "10m",
        _WARNING,
        "One of a hundred produce requests to {{ $labels.instance }} takes {{ $value | humanize }} ms or more",
        "The dashboard of the node says where the time goes: remotetimems are the followers, localtimems the disk.",
    ),
    Alert(
        "TidelogProduceRefused",
        f'sum by (instance) (rate(kafka_server_brokertopicmetrics_failedproducerequests_total{{{_JOB},topic=""}}[5m]))'
        f' / sum by (instance) (rate(kafka_server_brokertopicmetrics_totalproducerequests_total{{{_JOB},topic=""}}[5m])) > 0.05',
        "10m",
        _WARNING,
        "{{ $value | humanizePercentage }} of the produce requests to {{ $labels.instance }} are refused",
        "By topic on the dashboard of topics: too few replicas in sync, records that are too large, or a right that is missing.",
    ),
    Alert(
        "TidelogGroupStuck",
        f"({_BEHIND_AND_STILL}) and on (consumergroup) max by (consumergroup) (kafka_consumergroup_members{{{_JOB}}}) > 0",
        "5m",
        _WARNING,
        "Group {{ $labels.consumergroup }} is {{ $value }} records behind in {{ $labels.topic }} and stands still",
        "It has members: look at their logs, and whether an open transaction holds readers of committed records back.",
    ),
    Alert(
        "TidelogGroupWithoutMembers",
        f"({_BEHIND_AND_STILL}) and on (consumergroup) max by (consumergroup) (kafka_consumergroup_members{{{_JOB}}}) == 0",
        "1h",
        _WARNING,
        "Group {{ $labels.consumergroup }} is {{ $value }} records behind in {{ $labels.topic }} and has no members",
        "Start its consumers, or delete a group that is no longer used: kafka-consumer-groups --delete.",
    ),
    Alert(
        "TidelogGroupLostRecords",
        f"max by (consumergroup, topic, partition) (kafka_consumergroup_current_offset{{{_JOB}}})"
        f" < on (topic, partition) group_left () max by (topic, partition) (kafka_topic_partition_oldest_offset{{{_JOB}}})",
        "2m",
        _CRITICAL,
        "Records of {{ $labels.topic }}-{{ $labels.partition }} are deleted that group {{ $labels.consumergroup }} had not read",
        "Retention was shorter than the group's delay: lengthen it, then see what auto.offset.reset makes the consumers skip.",
    ),
    Alert(
        "TidelogShareGroupStuck",
        f"max by (group, topic) (tidelog_share_group_oldest_unacknowledged_seconds{{{_JOB}}}) > 3600",
        "10m",
        _WARNING,
        "A record of {{ $labels.topic }} waits for share group {{ $labels.group }} since {{ $value | humanizeDuration }}",
        "tidelog share-groups --describe shows the start offset of each partition, tidelog why-record why that record waits.",
    ),
    Alert(
        "TidelogDeadLettersLost",
        f"sum by (group) (increase({_LOST_LETTERS}{{{_JOB}}}[15m])) > 0",
        "1m",
        _CRITICAL,
        "Share group {{ $labels.group }} gives up records that are not in its dead-letter topic",
        "The brokers' logs name their offsets and the reason. While the topic still has them, they can be read there.",
    ),
    Alert(
        "TidelogHangingTransaction",
        f"sum by (instance) (kafka_server_replicamanager_partitionswithlatetransactionscount{{{_JOB}}}) > 0",
        "5m",
        _WARNING,
        "{{ $value }} partitions led by {{ $labels.instance }} have a transaction that is open for too long",
        "kafka-transactions find-hanging shows it, and abort ends it. Until then readers of committed records stop before it.",
    ),
    Alert(
        "TidelogTransactionMarkersMissing",
        f"max by (instance) (tidelog_missing_transaction_markers{{{_JOB}}}) > 0",
        "10m",
        _WARNING,
        "{{ $value }} partitions wait for the end of transactions that {{ $labels.instance }} has decided",
        "The leaders of those partitions are not reachable from this node: look at its log.",
    ),
    Alert(
        "TidelogCertificateEnds",
        f"min by (instance, listener) (tidelog_tls_certificate_expiry_seconds{{{_JOB}}} - time()) < 14 * 86400",
        "1h",
        _WARNING,
        "The certificate of {{ $labels.listener }} on {{ $labels.instance }} ends in {{ $value | humanizeDuration }}",
        "tidelog secure rotate makes new ones without downtime; files that change are read again by the nodes.",
    ),
    Alert(
        "TidelogCertificateEndsSoon",
        f"min by (instance, listener) (tidelog_tls_certificate_expiry_seconds{{{_JOB}}} - time()) < 2 * 86400",
        "5m",
        _CRITICAL,
        "The certificate of {{ $labels.listener }} on {{ $labels.instance }} ends in {{ $value | humanizeDuration }}",
        "After that no client connects: tidelog secure rotate, now.",
    ),
    Alert(
        "TidelogAuditLoses",
        f'sum by (instance) (increase(tidelog_audit_left_out_total{{{_JOB},reason="dropped"}}[10m])) > 0',
        "0m",
        _WARNING,
        "{{ $labels.instance }} could not write {{ $value | humanize }} events of the audit in ten minutes",
        "Look at the disk of the audit's file, or at its topic.",
    ),
    Alert(
        "TidelogOpenFiles",
        f"process_open_fds{{{_JOB}}} / process_max_fds{{{_JOB}}} > 0.8",
        "5m",
        _WARNING,
        "{{ $labels.instance }} has {{ $value | humanizePercentage }} of the files open that it may",
        "Raise LimitNOFILE of its service, or look at which clients leave connections open.",
    ),
)
