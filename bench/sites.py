"""``python -m bench.sites``: three nodes in three places that are some milliseconds apart, clients in the first of them.

The distance is made by ``tests.faults.network``, one thread of this process that passes everything on: throughput here has that
thread in it too. Prints a line of JSON for each step. A change of the quorum's epoch or of a partition's leader epoch that nobody
asked for counts as spurious.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.cluster_rows import CLIENTS as BENCH_CLIENTS
from bench.cluster_rows import LATENCY_BATCH, PARTITIONS, run_open_messaging
from bench.cluster_sides import DEFAULTS
from bench.report import machine
from tests.faults.network import CLIENTS
from tests.matrix.cluster import METADATA, MatrixCluster
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

NODES = 3
TOPIC = "sites"


def epochs(cluster: MatrixCluster) -> dict[str, Any]:
    """The quorum's epoch and leader, and the sum of the partitions' leader epochs."""
    part = cluster.ask(1, DescribeQuorumRequest(topics=METADATA)).topics[0].partitions[0]
    topic = cluster.ask(1, MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])).topics[0]
    smallest = min((len(each.isr_nodes) for each in topic.partitions), default=0)
    return {
        "quorum": [part.leader_epoch, part.leader_id],
        "leader_epochs": sum(each.leader_epoch for each in topic.partitions),
        "smallest_isr": smallest,
    }


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def measure(cluster: MatrixCluster, args: argparse.Namespace) -> None:
    wanted = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=NODES)
    cluster.until(
        lambda: cluster.ask(1, CreateTopicsRequest(topics=[wanted])).topics[0].error_code in (0, 36), "the topic is made"
    )
    cluster.until(lambda: epochs(cluster)["smallest_isr"] == NODES, "all replicas are in sync")
    for latency_ms in (0, args.latency_ms):
        if latency_ms:
            for one, others in ((1, (2, 3)), (2, (3,)), (CLIENTS, (2, 3))):
                cluster.network.slow([one], others, latency_ms / 1000)
        before = epochs(cluster)
        for rate in (args.rate, 0):
            how = (TOPIC, PARTITIONS, rate, args.seconds, args.warmup, 1024, BENCH_CLIENTS, LATENCY_BATCH)
            say(one_way_ms=latency_ms, rate=rate or "full speed", **run_open_messaging(cluster, *how))
        time.sleep(args.idle)
        say(one_way_ms=latency_ms, before=before, after=epochs(cluster), spurious=before != epochs(cluster))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sites", description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=15, help="one way, between any two places [15]")
    parser.add_argument("--rate", type=int, default=5000, help="records of 1 KiB a second [5000]")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--idle", type=float, default=20, help="how long is looked for elections without load [20]")
    args = parser.parse_args()
    data = Path(tempfile.mkdtemp(prefix="tidelog-sites-"))
    say(date=time.strftime("%Y-%m-%d %H:%M", time.gmtime()), machine=machine(), **vars(args))
    try:
        with MatrixCluster(data, NODES, combined=True, properties=DEFAULTS) as cluster:
            measure(cluster, args)
            say(complaints=cluster.complaints()[:5])
    finally:
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    main()
