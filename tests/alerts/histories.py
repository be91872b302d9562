"""For each alert a history in which it fires and one, as close as possible, in which it is quiet.

A history is a number of series in promtool's notation, one sample a minute, and the minute at which the rule is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NODE: Final = 'job="tidelog",instance="one:9644"'
OTHER: Final = 'job="tidelog",instance="two:9644"'
HOURS: Final = 60


@dataclass(frozen=True)
class History:
    """``fires``: in this history; ``quiet``: not in this one. Both are looked at after ``minutes``."""

    fires: dict[str, str]
    quiet: dict[str, str]
    minutes: int


def gauge(name: str, bad: str, good: str, minutes: int, labels: str = NODE) -> History:
    """One series. ``bad`` and ``good`` are its values."""
    series = f"{name}{{{labels}}}"
    return History({series: bad}, {series: good}, minutes)


def constant(name: str, bad: str, good: str, minutes: int, labels: str = NODE) -> History:
    """One series with one value for all time."""
    return gauge(name, f"{bad}+0x{minutes + 10}", f"{good}+0x{minutes + 10}", minutes, labels)


_PART = 'consumergroup="billing",topic="orders",partition="0"'
_LAG = f"kafka_consumergroup_lag{{{NODE},{_PART}}}"
_READ = f"kafka_consumergroup_current_offset{{{NODE},{_PART}}}"
_MEMBERS = f'kafka_consumergroup_members{{{NODE},consumergroup="billing"}}'
_STILL = {_LAG: "500+10x200", _READ: "100+0x200"}
_MOVES = {_LAG: "500+10x200", _READ: "100+1x200"}
_OLDEST = f'kafka_topic_partition_oldest_offset{{{OTHER},topic="orders",partition="0"}}'
_TIMES = f'kafka_network_requestmetrics_totaltimems{{{NODE},request="Produce",quantile="0.99"}}'
_TOPICS = "kafka_server_brokertopicmetrics"
_HWM = "kafka_server_raftmetrics_high_watermark"
_TLS = f'{NODE},listener="CLIENTS"'
_OLDEST_JOB = "tidelog_share_group_oldest_unacknowledged_seconds"
_LOST_LETTERS = "kafka_server_sharegroupmetrics_deadletterqueuefailedproducerequests_total"
_QUEUE = f'{NODE},group="workers",topic="jobs",partition="0"'
_DAY: Final = 24 * 60

HISTORIES: Final[dict[str, History]] = {
    "TidelogNodeDown": constant("up", "0", "1", 5),
    "TidelogPartitionsWithoutLeader": constant("kafka_controller_kafkacontroller_offlinepartitionscount", "3", "0", 5),
    "TidelogNoActiveController": History(
        {f"kafka_controller_kafkacontroller_activecontrollercount{{{each}}}": "0+0x20" for each in (NODE, OTHER)},
        {
            f"kafka_controller_kafkacontroller_activecontrollercount{{{NODE}}}": "0+0x20",
            f"kafka_controller_kafkacontroller_activecontrollercount{{{OTHER}}}": "1+0x20",
        },
        5,
    ),
    "TidelogBelowMinIsr": constant("kafka_server_replicamanager_underminisrpartitioncount", "1", "0", 5),
    # A rolling restart: out of sync for a few minutes.
    "TidelogUnderReplicated": gauge("kafka_server_replicamanager_underreplicatedpartitions", "5+0x30", "5+0x5 0+0x30", 15),
    "TidelogBrokerFenced": gauge("kafka_controller_kafkacontroller_fencedbrokercount", "1+0x30", "1+0x3 0+0x30", 10),
    "TidelogUncleanElection": gauge("kafka_controller_controllerstats_uncleanleaderelections_total", "0+0x5 1+0x10", "1+0x20", 8),
    "TidelogLogDirOffline": constant("kafka_log_logmanager_offlinelogdirectorycount", "1", "0", 2),
    "TidelogDamagedLog": gauge("tidelog_log_damaged_ranges", "1+0x40", "1+0x8 0+0x40", 20),
    "TidelogDiskNearlyFull": constant(
        "tidelog_log_dir_free_bytes", "19000000000", "21000000000", 10, f'{NODE},log_dir="/var/lib/tidelog"'
    ),
    # 100 MB a minute: full in 10 hours, or in 10 days.
    "TidelogDiskFullInADay": gauge(
        "tidelog_log_dir_free_bytes",
        f"100000000000-100000000x{8 * HOURS}",
        f"1500000000000-100000000x{8 * HOURS}",
        7 * HOURS,
        f'{NODE},log_dir="/var/lib/tidelog"',
    ),
    "TidelogReplicaBehind": gauge(
        "kafka_server_replicafetchermanager_maxlag", "20000+0x40", "20000+0x8 9000+0x40", 20, f'{NODE},clientId="Replica"'
    ),
    "TidelogReplicaCannotAppend": constant(
        "kafka_server_replicafetchermanager_failedpartitionscount", "1", "0", 10, f'{NODE},clientId="Replica"'
    ),
    "TidelogMetadataBehind": History(
        {f"{_HWM}{{{NODE}}}": "9000+100x20", f"{_HWM}{{{OTHER}}}": "9000+0x20"},
        {f"{_HWM}{{{NODE}}}": "9000+100x20", f"{_HWM}{{{OTHER}}}": "8950+100x20"},
        18,
    ),
    "TidelogEventLoopBusy": gauge(
        "kafka_network_socketserver_networkprocessoravgidle_percent", "0.05+0x30", "0.05+0x5 0.5+0x30", 15
    ),
    "TidelogProduceSlow": History({_TIMES: "900+0x30"}, {_TIMES: "900+0x4 20+0x30"}, 15),
    "TidelogProduceRefused": History(
        {
            f"{_TOPICS}_failedproducerequests_total{{{NODE}}}": "0+10x40",
            f"{_TOPICS}_totalproducerequests_total{{{NODE}}}": "0+100x40",
        },
        {
            f"{_TOPICS}_failedproducerequests_total{{{NODE}}}": "0+1x40",
            f"{_TOPICS}_totalproducerequests_total{{{NODE}}}": "0+100x40",
        },
        30,
    ),
    "TidelogGroupStuck": History({**_STILL, _MEMBERS: "3+0x200"}, {**_MOVES, _MEMBERS: "3+0x200"}, 40),
    "TidelogGroupWithoutMembers": History({**_STILL, _MEMBERS: "0+0x200"}, {**_STILL, _MEMBERS: "3+0x200"}, 120),
    "TidelogGroupLostRecords": History({_READ: "100+0x20", _OLDEST: "150+0x20"}, {_READ: "100+0x20", _OLDEST: "100+0x20"}, 5),
    # A job that takes long, and one that is done at last.
    "TidelogShareGroupStuck": gauge(_OLDEST_JOB, "3000+60x60", "3000+60x18 0+60x40", 30, _QUEUE),
    "TidelogDeadLettersLost": gauge(_LOST_LETTERS, "0+0x5 3+0x20", "3+0x30", 8, f'{NODE},group="workers"'),
    "TidelogHangingTransaction": constant("kafka_server_replicamanager_partitionswithlatetransactionscount", "1", "0", 10),
    "TidelogTransactionMarkersMissing": gauge("tidelog_missing_transaction_markers", "4+0x30", "4+0x3 0+0x30", 15),
    "TidelogCertificateEnds": constant("tidelog_tls_certificate_expiry_seconds", str(10 * 86400), str(30 * 86400), 120, _TLS),
    "TidelogCertificateEndsSoon": constant("tidelog_tls_certificate_expiry_seconds", "86400", str(10 * 86400), 10, _TLS),
    "TidelogAuditLoses": gauge("tidelog_audit_left_out_total", "0+0x5 7+0x20", "7+0x30", 8, f'{NODE},reason="dropped"'),
    "TidelogOpenFiles": History(
        {f"process_open_fds{{{NODE}}}": "900+0x20", f"process_max_fds{{{NODE}}}": "1024+0x20"},
        {f"process_open_fds{{{NODE}}}": "300+0x20", f"process_max_fds{{{NODE}}}": "1024+0x20"},
        10,
    ),
}
