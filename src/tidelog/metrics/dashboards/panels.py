"""The dashboards: the cluster, its topics, its consumer groups, one node.

Every question is about ``job=~"$job"``. What all nodes know of the cluster (topics, partitions) is taken once, with ``max``; what
each knows of itself is summed or shown by ``instance``.
"""

from __future__ import annotations

from typing import Final

from tidelog.metrics.dashboards.board import Dashboard, Panel, Query, Row, Unit, Variable, line, number

_JOB: Final = 'job=~"$job"'
_NODE: Final = 'job=~"$job",instance=~"$instance"'
_TOPIC: Final = 'job=~"$job",topic=~"$topic"'
_GROUP: Final = 'job=~"$job",consumergroup=~"$group"'
_BROKER_TOPICS: Final = "kafka_server_brokertopicmetrics"
_LETTERS: Final = "kafka_server_sharegroupmetrics_deadletterqueuerecordcount_total"
_TIMES: Final = "kafka_network_requestmetrics"


def _topics_rate(counter: str, by: str = "instance") -> str:
    """The rate of a counter of topics over all topics; its series without a topic is that sum."""
    return f'sum by ({by}) (rate({_BROKER_TOPICS}_{counter}_total{{{_JOB},topic=""}}[$__rate_interval]))'


def _of_topic(counter: str) -> str:
    return f'sum by (topic) (rate({_BROKER_TOPICS}_{counter}_total{{{_TOPIC},topic!=""}}[$__rate_interval]))'


CLUSTER: Final = Dashboard(
    uid="tidelog-cluster",
    title="tidelog: cluster",
    doc="Is the cluster whole, who leads it, how much goes through it.",
    rows=(
        Row(
            "Health",
            (
                number("Nodes that answer", f"sum(up{{{_JOB}}})", doc="Targets of this job that Prometheus can scrape."),
                number("Brokers", f"max(kafka_controller_kafkacontroller_activebrokercount{{{_JOB}}})", bad_below=1),
                number("Fenced brokers", f"max(kafka_controller_kafkacontroller_fencedbrokercount{{{_JOB}}})", bad_from=1),
                number(
                    "Active controllers",
                    f"sum(kafka_controller_kafkacontroller_activecontrollercount{{{_JOB}}})",
                    doc="1, but for the moment of an election.",
                    bad_below=1,
                ),
                number(
                    "Partitions without a leader",
                    f"max(kafka_controller_kafkacontroller_offlinepartitionscount{{{_JOB}}})",
                    doc="They can be neither read nor written.",
                    bad_from=1,
                ),
                number(
                    "Partitions below min.insync.replicas",
                    f"sum(kafka_server_replicamanager_underminisrpartitioncount{{{_JOB}}})",
                    doc="Producers with acks=all are refused.",
                    bad_from=1,
                ),
                number(
                    "Under-replicated partitions",
                    f"sum(kafka_server_replicamanager_underreplicatedpartitions{{{_JOB}}})",
                    bad_from=1,
                ),
                number(
                    "Offline log dirs",
                    f"sum(kafka_log_logmanager_offlinelogdirectorycount{{{_JOB}}})",
                    bad_from=1,
                ),
                number(
                    "Damaged places in logs",
                    f"sum(tidelog_log_damaged_ranges{{{_JOB}}})",
                    doc="Known, not readable, and not mended from another replica yet.",
                    bad_from=1,
                ),
                number(
                    "Unclean elections in a day",
                    f"sum(increase(kafka_controller_controllerstats_uncleanleaderelections_total{{{_JOB}}}[1d]))",
                    doc="Each may have lost records that were acknowledged.",
                    bad_from=1,
                ),
            ),
        ),
        Row(
            "Traffic",
            (
                line("Records in", _topics_rate("messagesin"), unit=Unit.A_SECOND),
                line("Bytes in", _topics_rate("bytesin"), unit=Unit.BYTES_A_SECOND),
                line("Bytes out to consumers", _topics_rate("bytesout"), unit=Unit.BYTES_A_SECOND),
                line("Bytes to followers", _topics_rate("replicationbytesout"), unit=Unit.BYTES_A_SECOND),
                line("Refused produce requests", _topics_rate("failedproducerequests"), unit=Unit.A_SECOND),
                line("Refused fetch requests", _topics_rate("failedfetchrequests"), unit=Unit.A_SECOND),
            ),
        ),
        Row(
            "Replication",
            (
                line("Partitions led", f"sum by (instance) (kafka_server_replicamanager_leadercount{{{_JOB}}})"),
                line("Partitions held", f"sum by (instance) (kafka_server_replicamanager_partitioncount{{{_JOB}}})"),
                line(
                    "Replicas that leave and join the ISR",
                    Query(f"sum(rate(kafka_server_replicamanager_isrshrinks_total{{{_JOB}}}[$__rate_interval]))", "leave"),
                    Query(f"sum(rate(kafka_server_replicamanager_isrexpands_total{{{_JOB}}}[$__rate_interval]))", "join"),
                    unit=Unit.A_SECOND,
                ),
                line(
                    "Records that the slowest replica lacks",
                    f"max by (instance) (kafka_server_replicafetchermanager_maxlag{{{_JOB}}})",
                ),
                line(
                    "Leader elections",
                    f"sum by (instance) (rate(tidelog_leader_elections_total{{{_JOB}}}[$__rate_interval]))",
                    unit=Unit.A_SECOND,
                ),
                line(
                    "Partitions not led by their preferred replica",
                    f"max(kafka_controller_kafkacontroller_preferredreplicaimbalancecount{{{_JOB}}})",
                    by="partitions",
                ),
            ),
        ),
        Row(
            "Metadata quorum",
            (
                line("Epoch", f"max by (instance) (kafka_server_raftmetrics_current_epoch{{{_JOB}}})"),
                line(
                    "Behind the quorum",
                    f"scalar(max(kafka_server_raftmetrics_high_watermark{{{_JOB}}}))"
                    f" - kafka_server_raftmetrics_high_watermark{{{_JOB}}}",
                    doc="Metadata records that a node has not seen as committed.",
                ),
                line("Metadata log", f"max by (instance) (kafka_server_raftmetrics_log_end_offset{{{_JOB}}})"),
            ),
        ),
    ),
)

TOPICS: Final = Dashboard(
    uid="tidelog-topics",
    title="tidelog: topics",
    doc="Which topics take and give how much, and how large they are.",
    variables=(Variable("topic", "topic", "kafka_topic_partitions"),),
    rows=(
        Row(
            "Traffic",
            (
                line("Records in", _of_topic("messagesin"), unit=Unit.A_SECOND, by="{{topic}}"),
                line("Bytes in", _of_topic("bytesin"), unit=Unit.BYTES_A_SECOND, by="{{topic}}"),
                line("Bytes out to consumers", _of_topic("bytesout"), unit=Unit.BYTES_A_SECOND, by="{{topic}}"),
                line("Bytes refused", _of_topic("bytesrejected"), unit=Unit.BYTES_A_SECOND, by="{{topic}}"),
            ),
        ),
        Row(
            "Size",
            (
                line(
                    "On disk, all replicas",
                    f"sum by (topic) (kafka_log_log_size{{{_TOPIC}}})",
                    unit=Unit.BYTES,
                    by="{{topic}}",
                ),
                line(
                    "Offsets from the oldest to the newest record",
                    f"sum by (topic) (max by (topic, partition) (kafka_topic_partition_current_offset{{{_TOPIC}}})"
                    f" - max by (topic, partition) (kafka_topic_partition_oldest_offset{{{_TOPIC}}}))",
                    by="{{topic}}",
                ),
                line("Partitions", f"max by (topic) (kafka_topic_partitions{{{_TOPIC}}})", by="{{topic}}"),
                line(
                    "Segments, all replicas",
                    f"sum by (topic) (kafka_log_log_numlogsegments{{{_TOPIC}}})",
                    by="{{topic}}",
                ),
            ),
        ),
        Row(
            "Replicas",
            (
                line(
                    "Partitions with replicas out of sync",
                    f"sum by (topic) (max by (topic, partition) (kafka_topic_partition_under_replicated_partition{{{_TOPIC}}}))",
                    by="{{topic}}",
                ),
                line(
                    "Committed, but behind an open transaction",
                    f"sum by (topic) (max by (topic, partition) (kafka_cluster_partition_laststableoffsetlag{{{_TOPIC}}}))",
                    doc="Records that a read_committed consumer does not see yet.",
                    by="{{topic}}",
                ),
            ),
        ),
    ),
)

_LAG = f"max by (consumergroup, topic, partition) (kafka_consumergroup_lag{{{_GROUP}}})"
_DONE = f"max by (consumergroup, topic, partition) (rate(kafka_consumergroup_current_offset{{{_GROUP}}}[$__rate_interval]))"

GROUPS: Final = Dashboard(
    uid="tidelog-groups",
    title="tidelog: consumer groups",
    doc="How far groups are behind, and whether they catch up.",
    variables=(Variable("group", "consumergroup", "kafka_consumergroup_members"),),
    rows=(
        Row(
            "Lag",
            (
                line("Records behind", f"sum by (consumergroup) ({_LAG})", by="{{consumergroup}}"),
                line("Records behind, by topic", f"sum by (consumergroup, topic) ({_LAG})", by="{{consumergroup}} {{topic}}"),
                line(
                    "Time to catch up at the present rate",
                    f"sum by (consumergroup) ({_LAG}) / sum by (consumergroup) ({_DONE})",
                    unit=Unit.SECONDS,
                    doc="Infinite for a group that is behind and does not move. New records are not counted.",
                    by="{{consumergroup}}",
                ),
                line("Partitions furthest behind", f"topk(10, {_LAG})", by="{{consumergroup}} {{topic}}-{{partition}}"),
            ),
        ),
        Row(
            "Progress",
            (
                line("Records read", f"sum by (consumergroup) ({_DONE})", unit=Unit.A_SECOND, by="{{consumergroup}}"),
                line(
                    "Members",
                    f"max by (consumergroup) (kafka_consumergroup_members{{{_GROUP}}})",
                    by="{{consumergroup}}",
                ),
            ),
        ),
        Row(
            "Share groups",
            (
                line(
                    "Records not finished",
                    f"sum by (group, topic) (max by (group, topic, partition) (tidelog_share_group_lag{{{_JOB}}}))",
                    by="{{group}} {{topic}}",
                ),
                line(
                    "Age of the oldest record that is not finished",
                    f"max by (group, topic) (tidelog_share_group_oldest_unacknowledged_seconds{{{_JOB}}})",
                    unit=Unit.SECONDS,
                    by="{{group}} {{topic}}",
                ),
                line(
                    "Records in flight",
                    f"sum by (group, topic) (kafka_server_sharepartitionmetrics_inflightmessagecount{{{_JOB}}})",
                    doc="From the first that is not finished to the last that was delivered.",
                    by="{{group}} {{topic}}",
                ),
                line(
                    "Dead letters",
                    f"sum by (group) (rate({_LETTERS}{{{_JOB}}}[$__rate_interval]))",
                    unit=Unit.A_SECOND,
                    by="{{group}}",
                ),
            ),
        ),
    ),
)


def _time(title: str, metric: str, doc: str = "", request: str = "Produce|FetchConsumer|FetchFollower|Metadata") -> Panel:
    expr = f'max by (request) ({_TIMES}_{metric}{{{_NODE},request=~"{request}",quantile="0.99"}})'
    return line(title, expr, unit=Unit.MS, doc=doc, by="{{request}}")


NODE: Final = Dashboard(
    uid="tidelog-node",
    title="tidelog: node",
    doc="What one node does with its time, its memory and its disks.",
    variables=(Variable("instance", "instance", "tidelog_info"),),
    rows=(
        Row(
            "Load",
            (
                line(
                    "Event loop busy",
                    f"1 - kafka_network_socketserver_networkprocessoravgidle_percent{{{_NODE}}}",
                    unit=Unit.SHARE,
                    doc="Near 1 the node is at its limit: add a node.",
                ),
                line("CPU", f"rate(process_cpu_seconds_total{{{_NODE}}}[$__rate_interval])", unit=Unit.SHARE),
                line("Memory", f"process_resident_memory_bytes{{{_NODE}}}", unit=Unit.BYTES),
                line("Open files", f"process_open_fds{{{_NODE}}}"),
                line(
                    "Connections",
                    f"sum by (listener) (kafka_server_socket_server_metrics_connection_count{{{_NODE}}})",
                    by="{{listener}}",
                ),
                line(
                    "Parked requests",
                    f"sum by (delayedOperation) (kafka_server_delayedoperationpurgatory_numdelayedoperations{{{_NODE}}})",
                    by="{{delayedOperation}}",
                ),
            ),
        ),
        Row(
            "Requests",
            (
                line(
                    "Requests by API",
                    f"sum by (request) (rate({_TIMES}_requests_total{{{_NODE}}}[$__rate_interval]))",
                    unit=Unit.A_SECOND,
                    by="{{request}}",
                ),
                _time("From read to sent, 99 of 100", "totaltimems"),
                _time("In the handler, 99 of 100", "localtimems"),
                _time("Parked, 99 of 100", "remotetimems", "For a fetch: waiting for records is its purpose."),
                _time("Until the socket has taken the answer, 99 of 100", "responsesendtimems"),
                _time("Throttled, 99 of 100", "throttletimems", "Clients above their quota are slowed down."),
            ),
        ),
        Row(
            "Disks",
            (
                line("Free", f"tidelog_log_dir_free_bytes{{{_NODE}}}", unit=Unit.BYTES, by="{{instance}} {{log_dir}}"),
                line(
                    "Written",
                    f"rate(kafka_server_kafkaserver_linux_disk_write_bytes{{{_NODE}}}[$__rate_interval])",
                    unit=Unit.BYTES_A_SECOND,
                ),
                line(
                    "Read",
                    f"rate(kafka_server_kafkaserver_linux_disk_read_bytes{{{_NODE}}}[$__rate_interval])",
                    unit=Unit.BYTES_A_SECOND,
                    doc="Consumers at the end of a log are served from memory.",
                ),
                line(
                    "Compared with checksums by the scrub",
                    f"rate(tidelog_scrub_bytes_total{{{_NODE}}}[$__rate_interval])",
                    unit=Unit.BYTES_A_SECOND,
                ),
            ),
        ),
        Row(
            "Transactions",
            (
                line(
                    "Oldest transaction",
                    f"tidelog_oldest_transaction_seconds{{{_NODE}}}",
                    unit=Unit.SECONDS,
                ),
                line("Transactional ids by state", f"sum by (state) (tidelog_transactional_ids{{{_NODE}}})", by="{{state}}"),
                line("Partitions that wait for a marker", f"tidelog_missing_transaction_markers{{{_NODE}}}"),
            ),
        ),
        Row(
            "Security",
            (
                line(
                    "End of the certificate",
                    f"min by (instance, listener) (tidelog_tls_certificate_expiry_seconds{{{_NODE}}} - time())",
                    unit=Unit.SECONDS,
                    by="{{instance}} {{listener}}",
                ),
                line(
                    "Failed TLS handshakes",
                    f"sum by (listener) (rate(tidelog_tls_failed_handshakes_total{{{_NODE}}}[$__rate_interval]))",
                    unit=Unit.A_SECOND,
                    by="{{listener}}",
                ),
                line(
                    "Denied by the authorizer, a minute",
                    f"sum by (instance) (kafka_server_plugins_authorization_denied_rate_per_minute{{{_NODE}}})",
                ),
                line(
                    "Unreadable requests",
                    f"sum by (listener) (rate(tidelog_protocol_violations_total{{{_NODE}}}[$__rate_interval]))",
                    unit=Unit.A_SECOND,
                    by="{{listener}}",
                ),
            ),
        ),
    ),
)

DASHBOARDS: Final = (CLUSTER, TOPICS, GROUPS, NODE)
