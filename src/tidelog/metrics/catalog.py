"""Every metric once: name, kind, labels, and what it tells.

Names that begin with ``kafka_`` are those under which the usual Kafka dashboards look (a JMX exporter's form of Kafka's
MBeans, and kafka_exporter's); what begins with ``process_`` is Prometheus's own convention; ``tidelog_`` is ours.
A row without labels of a per-topic counter (``topic=""``) is the sum over all topics since the start, as in Kafka.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What one may do with a metric's values."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


class Metric:
    """One row. ``name`` is complete: a counter's ends in ``_total``. ``bounds`` are a histogram's bucket limits."""

    __slots__ = ("bounds", "doc", "kind", "labels", "name")

    def __init__(self, name: str, kind: Kind, doc: str, labels: tuple[str, ...] = (), bounds: tuple[float, ...] = ()) -> None:
        self.name = name
        self.kind = kind
        self.doc = doc
        self.labels = labels
        self.bounds = bounds

    def __repr__(self) -> str:
        return f"Metric({self.name})"


_ALL: list[Metric] = []


def _metric(name: str, kind: Kind, doc: str, *labels: str) -> Metric:
    metric = Metric(name, kind, doc, labels)
    _ALL.append(metric)
    return metric


def _topic_counter(name: str, doc: str) -> Metric:
    return _metric(f"kafka_server_brokertopicmetrics_{name}_total", Kind.COUNTER, doc, "topic")


def _gauge(name: str, doc: str, *labels: str) -> Metric:
    return _metric(name, Kind.GAUGE, doc, *labels)


def _summary(name: str, doc: str, *labels: str) -> Metric:
    return _metric(name, Kind.SUMMARY, doc, *labels)


def _counter(name: str, doc: str, *labels: str) -> Metric:
    return _metric(name, Kind.COUNTER, doc, *labels)


MESSAGES_IN = _topic_counter("messagesin", "Records written by producers.")
BYTES_IN = _topic_counter("bytesin", "Bytes of record batches written by producers.")
BYTES_OUT = _topic_counter("bytesout", "Bytes of record batches sent to consumers.")
REPLICATION_BYTES_IN = _topic_counter("replicationbytesin", "Bytes of record batches copied from leaders.")
REPLICATION_BYTES_OUT = _topic_counter("replicationbytesout", "Bytes of record batches sent to followers.")
BYTES_REJECTED = _topic_counter("bytesrejected", "Bytes of record batches that were refused.")
TOTAL_PRODUCE_REQUESTS = _topic_counter("totalproducerequests", "Produce requests, counted per partition that they name.")
FAILED_PRODUCE_REQUESTS = _topic_counter("failedproducerequests", "Those that were refused.")
TOTAL_FETCH_REQUESTS = _topic_counter("totalfetchrequests", "Fetch requests, counted per partition that they name.")
FAILED_FETCH_REQUESTS = _topic_counter("failedfetchrequests", "Those that were refused.")

PARTITION_COUNT = _gauge("kafka_server_replicamanager_partitioncount", "Partitions that this node holds.")
LEADER_COUNT = _gauge("kafka_server_replicamanager_leadercount", "Partitions that it leads.")
OFFLINE_REPLICA_COUNT = _gauge("kafka_server_replicamanager_offlinereplicacount", "Partitions whose log dir has failed.")
UNDER_REPLICATED = _gauge(
    "kafka_server_replicamanager_underreplicatedpartitions", "Partitions led here with replicas out of sync."
)
UNDER_MIN_ISR_COUNT = _gauge(
    "kafka_server_replicamanager_underminisrpartitioncount",
    "Partitions led here with fewer replicas in sync than min.insync.replicas.",
)
AT_MIN_ISR_COUNT = _gauge(
    "kafka_server_replicamanager_atminisrpartitioncount", "Partitions led here with just min.insync.replicas in sync."
)
ISR_SHRINKS = _counter("kafka_server_replicamanager_isrshrinks_total", "Times that a partition led here lost a replica in sync.")
ISR_EXPANDS = _counter("kafka_server_replicamanager_isrexpands_total", "Times that one got a replica in sync.")
FAILED_ISR_UPDATES = _counter(
    "kafka_server_replicamanager_failedisrupdates_total", "Changes of who is in sync that the controller refused."
)
FETCHER_MAX_LAG = _gauge(
    "kafka_server_replicafetchermanager_maxlag",
    "Records that the replica here that is furthest behind its leader lacks.",
    "clientId",
)
FETCHER_FAILED = _gauge(
    "kafka_server_replicafetchermanager_failedpartitionscount",
    "Replicas here whose leader sent what could not be appended.",
    "clientId",
)
FETCHER_LAG = _gauge(
    "kafka_server_fetcherlagmetrics_consumerlag", "Records that a replica here lacks.", "clientId", "topic", "partition"
)
LATE_TRANSACTIONS = _gauge(
    "kafka_server_replicamanager_partitionswithlatetransactionscount",
    "Partitions led here with a transaction that is open for longer than transaction.max.timeout.ms and five minutes.",
)
PRODUCER_IDS = _gauge("kafka_server_replicamanager_produceridcount", "Producers that the partitions here remember.")
PURGATORY_WAITING = _gauge(
    "kafka_server_delayedoperationpurgatory_numdelayedoperations",
    "Requests that are parked: a Produce for its followers, a Fetch for records.",
    "delayedOperation",
)
PURGATORY_SIZE = _gauge(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "Partitions and fetch sessions that parked requests watch, counted once for each request.",
    "delayedOperation",
)
FETCH_SESSIONS = _gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions", "Incremental fetch sessions that are remembered (KIP-227)."
)
FETCH_SESSION_PARTITIONS = _gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", "Partitions in those sessions."
)

PARTITION_UNDER_MIN_ISR = _gauge(
    "kafka_cluster_partition_underminisr", "1 when fewer replicas are in sync than min.insync.replicas.", "topic", "partition"
)
PARTITION_AT_MIN_ISR = _gauge(
    "kafka_cluster_partition_atminisr", "1 when just min.insync.replicas are in sync.", "topic", "partition"
)
LAST_STABLE_OFFSET_LAG = _gauge(
    "kafka_cluster_partition_laststableoffsetlag",
    "Records below the high watermark that readers of committed records do not see yet.",
    "topic",
    "partition",
)
PARTITION_REPLICAS = _gauge("kafka_cluster_partition_replicascount", "Replicas of the partition.", "topic", "partition")

ACTIVE_CONTROLLER = _gauge("kafka_controller_kafkacontroller_activecontrollercount", "1 on the node whose controller is active.")
OFFLINE_PARTITIONS = _gauge(
    "kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions of the cluster without a leader."
)
GLOBAL_TOPICS = _gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.")
GLOBAL_PARTITIONS = _gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.")
ACTIVE_BROKERS = _gauge("kafka_controller_kafkacontroller_activebrokercount", "Brokers that are registered and not fenced.")
FENCED_BROKERS = _gauge("kafka_controller_kafkacontroller_fencedbrokercount", "Brokers that are registered and fenced.")
PREFERRED_IMBALANCE = _gauge(
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions not led by their preferred replica."
)

UNCLEAN_ELECTIONS = _counter(
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "Partitions whose new leader was neither in sync nor eligible, so that records may be lost, since this node started.",
)
ELIGIBLE_ELECTIONS = _counter(
    "kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total",
    "Partitions whose new leader was not in sync but an eligible leader replica (KIP-966), since this node started.",
)
ELECTIONS = _counter("tidelog_leader_elections_total", "Partitions that got another leader, since this node started.")

RAFT_STATE = _gauge(
    "kafka_server_raftmetrics_current_state", "1 for the role that this node plays in the metadata quorum.", "state"
)
RAFT_LEADER = _gauge("kafka_server_raftmetrics_current_leader", "Number of the quorum's leader, -1 without one.")
RAFT_EPOCH = _gauge("kafka_server_raftmetrics_current_epoch", "Epoch of the quorum.")
RAFT_HIGH_WATERMARK = _gauge("kafka_server_raftmetrics_high_watermark", "End of what the quorum has committed.")
RAFT_LOG_END = _gauge("kafka_server_raftmetrics_log_end_offset", "End of this node's metadata log.")

LOG_SIZE = _gauge("kafka_log_log_size", "Bytes of the partition's segments on disk.", "topic", "partition")
LOG_START_OFFSET = _gauge("kafka_log_log_logstartoffset", "First offset that can be read.", "topic", "partition")
LOG_END_OFFSET = _gauge("kafka_log_log_logendoffset", "Offset that the next record gets.", "topic", "partition")
LOG_SEGMENTS = _gauge("kafka_log_log_numlogsegments", "Segments of the partition.", "topic", "partition")
FLUSH_TIME = _summary("kafka_log_logflushstats_logflushrateandtimems", "Time of the syncs of log segments to the disk, in ms.")
OFFLINE_LOG_DIRS = _gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log dirs that have failed.")
LOG_DIR_OFFLINE = _gauge("kafka_log_logmanager_logdirectoryoffline", "1 for a log dir that has failed.", "logDirectory")

CONNECTIONS = _gauge("kafka_server_socket_server_metrics_connection_count", "Open client connections.", "listener")
LOOP_IDLE_NETWORK = _gauge(
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "Share of time, 0 to 1, in which the event loop's thread had nothing to do, since the last look at it.",
)
LOOP_IDLE_HANDLERS = _gauge(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "The same: one loop does the network and the requests."
)
BROKER_STATE = _gauge("kafka_server_kafkaserver_brokerstate", "3 while the node serves, as Kafka numbers a broker's states.")
DISK_READ = _gauge("kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes that this process had read from disks.")
DISK_WRITE = _gauge("kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes that this process had written to disks.")

TOPIC_PARTITIONS = _gauge("kafka_topic_partitions", "Partitions of the topic.", "topic")
TOPIC_CURRENT_OFFSET = _gauge("kafka_topic_partition_current_offset", "High watermark of the partition.", "topic", "partition")
TOPIC_OLDEST_OFFSET = _gauge("kafka_topic_partition_oldest_offset", "First offset of the partition.", "topic", "partition")
TOPIC_REPLICAS = _gauge("kafka_topic_partition_replicas", "Replicas of the partition.", "topic", "partition")
TOPIC_IN_SYNC = _gauge(
    "kafka_topic_partition_in_sync_replica", "Replicas of the partition that are in sync.", "topic", "partition"
)
TOPIC_LEADER = _gauge("kafka_topic_partition_leader", "Number of the broker that leads the partition.", "topic", "partition")
TOPIC_PREFERRED = _gauge(
    "kafka_topic_partition_leader_is_preferred", "1 when the preferred replica leads the partition.", "topic", "partition"
)
TOPIC_UNDER_REPLICATED = _gauge(
    "kafka_topic_partition_under_replicated_partition", "1 when replicas of the partition are out of sync.", "topic", "partition"
)
BROKERS = _gauge("kafka_brokers", "Brokers of the cluster.")
BROKER_INFO = _gauge("kafka_broker_info", "1 for each broker of the cluster.", "id", "address")

GROUP_OFFSET = _gauge("kafka_consumergroup_current_offset", "How far the group has read.", "consumergroup", "topic", "partition")
GROUP_LAG = _gauge(
    "kafka_consumergroup_lag", "Records between the group's offset and the high watermark.", "consumergroup", "topic", "partition"
)
GROUP_MEMBERS = _gauge("kafka_consumergroup_members", "Members of the group.", "consumergroup")
STREAMS_GROUPS = _gauge(
    "kafka_server_group_coordinator_metrics_streams_group_count", "Streams groups that this node coordinates.", "state"
)
STREAMS_REBALANCES = _counter(
    "kafka_server_group_coordinator_metrics_streams_group_rebalances_total",
    "Heartbeats of members of streams groups that raised the epoch of their group.",
)

DEAD_LETTERS = (
    _counter("kafka_server_sharegroupmetrics_deadletterqueuerecordcount_total", "Dead letters written.", "group"),
    _counter(
        "kafka_server_sharegroupmetrics_deadletterqueuetotalproducerequests_total",
        "Batches of dead letters that were sent, those that were tried again included.",
        "group",
    ),
    _counter("kafka_server_sharegroupmetrics_deadletterqueuefailedproducerequests_total", "Batches that were given up.", "group"),
)
"""By share group (KIP-1191)."""
SHARE_GROUPS = _gauge(
    "kafka_server_group_coordinator_metrics_share_group_count", "Share groups that this node coordinates.", "state"
)
SHARE_REBALANCES = _counter(
    "kafka_server_group_coordinator_metrics_share_group_rebalances_total",
    "Heartbeats of members of share groups that raised the epoch of their group.",
)
SHARE_SESSIONS = (
    _gauge("kafka_server_sharesessioncache_sharesessionscount", "Sessions of members of share groups."),
    _gauge("kafka_server_sharesessioncache_sharepartitionscount", "Partitions in those sessions."),
    _counter(
        "kafka_server_sharesessioncache_sharesessionevictions_total", "Sessions that ended because their connection was lost."
    ),
)
SHARE_ACKNOWLEDGEMENTS = _counter(
    "kafka_server_sharegroupmetrics_recordacknowledgements_total",
    "Records that members of share groups acknowledged: Accept, Release, Reject, or Renew.",
    "ackType",
)
SHARE_LOAD_TIME = _summary(
    "kafka_server_sharegroupmetrics_partitionloadtimems", "Time until the state of a share partition is loaded, in ms."
)
SHARE_EXPIRES = _counter(
    "kafka_server_delayedsharefetchmetrics_expires_total", "ShareFetch requests whose time was over before there was enough."
)
SHARE_REQUESTS = (
    _topic_counter("totalsharefetchrequests", "ShareFetch requests, counted per topic that the session names."),
    _topic_counter("failedsharefetchrequests", "Those with an error for a partition of the topic."),
    _topic_counter("totalshareacknowledgementrequests", "Requests that acknowledge records of the topic."),
    _topic_counter("failedshareacknowledgementrequests", "Those with an error for a partition of the topic."),
)
"""In the order of ``broker.shares.share_partitions.ShareCounts``."""
_SHARE_PARTITION = ("group", "topic", "partition")
SHARE_PARTITIONS = (
    _gauge(
        "kafka_server_sharepartitionmetrics_inflightmessagecount",
        "Offsets from the first record that is not finished to the last that was delivered, of a partition led here.",
        *_SHARE_PARTITION,
    ),
    _gauge(
        "kafka_server_sharepartitionmetrics_inflightbatchcount",
        "Ranges of them that have one state and holder.",
        *_SHARE_PARTITION,
    ),
    _counter(
        "kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total",
        "Records whose lock timed out, since the partition was loaded.",
        *_SHARE_PARTITION,
    ),
    _gauge(
        "tidelog_share_group_lag",
        "Records below the high watermark that the share group has not finished. The partition's leader shows it, and the share "
        "coordinator if it has a replica, as of the last write: take the largest.",
        *_SHARE_PARTITION,
    ),
    _gauge(
        "tidelog_share_group_oldest_unacknowledged_seconds",
        "Age of the first of them, by the first timestamp of its batch; 0 without one.",
        *_SHARE_PARTITION,
    ),
)
SHARE_PRUNED = _gauge(
    "kafka_server_share_coordinator_metrics_last_pruned_offset",
    "Records of the partition of __share_group_state below this offset were replaced by newer ones, and deleted.",
    "topic",
    "partition",
)
SHARES = (
    *DEAD_LETTERS,
    SHARE_GROUPS,
    SHARE_REBALANCES,
    *SHARE_SESSIONS,
    SHARE_ACKNOWLEDGEMENTS,
    SHARE_EXPIRES,
    *SHARE_REQUESTS,
    *SHARE_PARTITIONS,
    SHARE_PRUNED,
)
"""Read in one pass, where there are share groups. In the order of ``share_metrics.ShareMetrics.look``."""

_QUOTA_OF = ("user", "client_id")
"""The quota's user and client id; one of them is empty unless the quota is for a client id of a user."""
PRODUCE_BYTE_RATE = _gauge("kafka_server_produce_byte_rate", "Bytes a second that a producer with a quota sends.", *_QUOTA_OF)
PRODUCE_THROTTLE_TIME = _gauge(
    "kafka_server_produce_throttle_time", "The average throttle time of its responses, in ms.", *_QUOTA_OF
)
FETCH_BYTE_RATE = _gauge("kafka_server_fetch_byte_rate", "Bytes a second that a consumer with a quota is sent.", *_QUOTA_OF)
FETCH_THROTTLE_TIME = _gauge("kafka_server_fetch_throttle_time", "The average throttle time of its responses, in ms.", *_QUOTA_OF)
REQUEST_TIME = _gauge(
    "kafka_server_request_request_time", "Percent of the loop's time that requests of a client with a quota take.", *_QUOTA_OF
)
REQUEST_THROTTLE_TIME = _gauge(
    "kafka_server_request_throttle_time", "The average throttle time of its responses, in ms.", *_QUOTA_OF
)

TRANSACTIONAL_IDS = _gauge("tidelog_transactional_ids", "Transactional ids whose coordinator is this node, by state.", "state")
OLDEST_TRANSACTION = _gauge(
    "tidelog_oldest_transaction_seconds",
    "Age of the oldest transaction that is open or being completed and whose coordinator is this node; 0 without one.",
)
MISSING_MARKERS = _gauge(
    "tidelog_missing_transaction_markers",
    "Partitions without the marker of a transaction that was decided here. What stays above 0 keeps readers back.",
)

REQUESTS = _counter(
    "kafka_network_requestmetrics_requests_total", "Requests that were read, by API and version.", "request", "version"
)
REQUEST_TIMES = tuple(
    _summary(f"kafka_network_requestmetrics_{name}timems", doc, "request")
    for name, doc in (
        ("total", "Time of a request from the read of its last bytes until its answer has left, in ms."),
        ("requestqueue", "Time until its handler begins, in ms."),
        ("local", "Time of the handler on the event loop until the answer is ready or the request waits, in ms."),
        ("remote", "Time that it is parked, or waits for a thread, the controller or another broker, in ms."),
        ("throttle", "Throttle time that its client was given, in ms. The answer does not wait for it (KIP-219)."),
        ("responsequeue", "Time until the answer's turn to be sent, in ms."),
        ("responsesend", "Time until the socket has taken the answer, in ms."),
    )
)
"""In the order of ``broker.request_times.PHASES``."""
_AUTHORIZER = ("config", "class")
AUTHORIZATIONS = tuple(
    _gauge(f"kafka_server_plugins_authorization_{what}_rate_per_minute", doc, *_AUTHORIZER)
    for what, doc in (
        ("request", "Questions that the authorizer was asked, a minute, over the time since the last scrapes."),
        ("allowed", "Those that it answered with yes."),
        ("denied", "Those that it answered with no, quiet ones included (KIP-877)."),
    )
)
"""In the order of ``node_metrics.Authorizations``."""
ACLS = _gauge("kafka_server_plugins_acls_total_count", "ACLs of the cluster, on a node with an authorizer.", *_AUTHORIZER)
DRY_RUN_DENIALS = _counter(
    "tidelog_authorizer_dry_run_denials_total",
    "Operations that went through and would have been denied but for tidelog.authorizer.dry.run.",
)
AUDIT_EVENTS = _counter("tidelog_audit_events_total", "Events of the audit that were passed on to its file and its topic.")
AUDIT_LEFT_OUT = _counter(
    "tidelog_audit_left_out_total",
    "Events that the audit only counted: reads, denials, failed_logins; and dropped ones, which its file or topic did not take.",
    "reason",
)
VIOLATIONS = _counter(
    "tidelog_protocol_violations_total", "Connections closed for what cannot be read or is not served.", "listener"
)
INFO = _gauge("tidelog_info", "1; which version runs here, as which node of which cluster.", "version", "node_id", "cluster_id")
UPTIME = _gauge("tidelog_uptime_seconds", "Time since the node was ready.")
REFUSED_CONNECTIONS = _counter(
    "tidelog_refused_connections_total", "Connections closed because of max.connections.per.ip.", "listener"
)
TLS_HANDSHAKES = _counter("tidelog_tls_handshakes_total", "TLS handshakes that ended with a secure connection.", "listener")
TLS_FAILED = _counter("tidelog_tls_failed_handshakes_total", "TLS handshakes that failed; the log has the reasons.", "listener")
TLS_PLAIN = _counter("tidelog_tls_plain_connections_total", "Connections to a TLS listener that sent plain text.", "listener")
TLS_EXPIRY = _gauge(
    "tidelog_tls_certificate_expiry_seconds", "The end of a listener's certificate, in seconds since 1970.", "listener"
)
LOG_DIR_FREE = _gauge("tidelog_log_dir_free_bytes", "Free space of the disk that a log dir lies on.", "log_dir")

DAMAGED = _gauge("tidelog_log_damaged_ranges", "Damaged places in logs of this node that are known, and cannot be read.")
MENDED = _counter("tidelog_log_mended_ranges_total", "Damaged places that were replaced by the batches of another replica.")
SCRUB_BYTES = _counter("tidelog_scrub_bytes_total", "Bytes that the scrub compared with their checksums.")
SCRUB_FOUND = _counter("tidelog_scrub_damaged_total", "Damaged places that the scrub found.")
SCRUB_PASS = _gauge("tidelog_scrub_pass_seconds", "Duration of the last whole pass of the scrub; 0 before the first.")
SCRUB_ENDED = _gauge("tidelog_scrub_last_pass_end_seconds", "Unix time of its end; 0 before the first.")

CATALOG: Final[tuple[Metric, ...]] = tuple(_ALL)
"""All rows, in the order of the documentation."""
