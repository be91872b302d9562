"""The rows."""

from __future__ import annotations

import re

from tidelog.metrics.catalog import CATALOG, Kind

DASHBOARDS = [
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_cluster_partition_underminisr",
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_replicascount",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_log_log_size",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "kafka_server_raftmetrics_current_state",
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_high_watermark",
    "kafka_server_raftmetrics_log_end_offset",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_under_replicated_partition",
    "kafka_topic_partitions",
    "kafka_broker_info",
]
"""What the usual dashboards of a Kafka cluster ask for, as far as one node without groups has it."""


def test_the_names_that_dashboards_ask_for_are_there() -> None:
    assert set(DASHBOARDS) <= {metric.name for metric in CATALOG}


def test_every_row_is_once_there_well_named_and_explained() -> None:
    names = [metric.name for metric in CATALOG]
    assert len(set(names)) == len(names)
    for metric in CATALOG:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name), metric
        assert metric.doc.endswith("."), metric
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric
        assert bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM), metric
