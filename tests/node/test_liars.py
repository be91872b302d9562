"""Three nodes, and peers that lie to all of their listeners at once: no node dies or fails, and the cluster keeps working.

``TIDELOG_LONG=1`` lies for ten minutes.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from tests.node.cluster import CLUSTER_ID, Cluster, ClusterFailed
from tests.node.liar import Known, Liar
from tests.node.test_cluster import alive, create
from tidelog.broker.table import API_TABLE
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC_ID
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.records.builder import RecordData, build_batch

SECONDS = 600 if os.environ.get("TIDELOG_LONG") else 6
GROWTH_MIB = 64
DONE: set[int] = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
SPARED = (
    ApiKey.UNREGISTER_BROKER,
    ApiKey.DELETE_TOPICS,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER,
)
"""They do rightfully what would leave nothing to lie about, or nobody who elects: a quorum that somebody shrank to one voter does
not follow a former one to the epoch that another lie took it to."""


def resident_mib(cluster: Cluster, node_id: int) -> float:
    status = Path(f"/proc/{cluster.running[node_id].pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def test_whatever_peers_claim_no_node_stumbles_and_the_cluster_goes_on(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, properties={"auto.create.topics.enable": "false"}) as cluster:
        for name in ("t", "u"):
            assert create(cluster, 1, name) == ErrorCode.NONE
        topics = cluster.ask(1, MetadataRequest(topics=None)).topics
        known = Known(
            cluster.ids,
            CLUSTER_ID,
            topics=("t", "u", "__consumer_offsets", "__transaction_state", "__cluster_metadata", "nowhere"),
            topic_ids=[*(topic.topic_id for topic in topics), METADATA_TOPIC_ID],
            directories=[cluster._directory_id(each) for each in cluster.ids],
            batches=[bytes(build_batch([RecordData(b"k", b"v" * 40, 1_700_000_000_000)] * count)) for count in (1, 5)],
        )
        before = {each: resident_mib(cluster, each) for each in cluster.ids}
        liars = [
            *(Liar(cluster.ports[each], [row for row in API_TABLE if row.broker], known, each, SPARED) for each in cluster.ids),
            *(
                Liar(cluster.controller_ports[each], [row for row in API_TABLE if row.controller], known, 10 + each, SPARED)
                for each in cluster.ids
            ),
        ]
        threads = [threading.Thread(target=liar.run, args=(SECONDS,)) for liar in liars]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answered = sum(liar.tally.answered for liar in liars)
        print(f"\n{answered} answered, {sum(liar.tally.closed for liar in liars)} connections closed")
        assert answered > 100 * len(liars)
        assert [each.poll() for each in cluster.running.values()] == [None] * 3
        assert not [line for line in cluster.complaints() if "Traceback" in line or "asyncio" in line], cluster.tails()
        assert all(resident_mib(cluster, each) - before[each] <= GROWTH_MIB for each in cluster.ids)
        cluster.until(lambda: alive(cluster, 1) == {1, 2, 3}, "all are in service")
        heard: set[int] = set()

        def made() -> bool:
            heard.add(create(cluster, 2, "afterwards"))
            return bool(heard & DONE)

        try:
            cluster.until(made, "a topic")
        except ClusterFailed as failed:
            raise ClusterFailed(f"answers {heard}: {failed}") from None
