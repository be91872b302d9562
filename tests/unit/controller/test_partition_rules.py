import pytest

from tidelog.controller.partition_rules import has_online_dir, min_in_sync, unclean_allowed
from tidelog.metadata.image import EMPTY_IMAGE, BrokerImage, ClusterImage, PartitionImage, TopicImage
from tidelog.model.ids import LOST_DIR, UNASSIGNED_DIR, ZERO_UUID, Uuid

DIR = Uuid(b"d" * 16)


@pytest.mark.parametrize(
    ("directory", "online"), [(DIR, True), (UNASSIGNED_DIR, True), (ZERO_UUID, True), (LOST_DIR, False), (Uuid(b"x" * 16), False)]
)
def test_a_replica_in_a_directory_that_is_gone_cannot_lead(directory: Uuid, online: bool) -> None:
    broker = BrokerImage(1, 0, DIR, {}, {}, None, False, False, (DIR,))
    assert has_online_dir(broker, directory) is online


def test_unclean_election_is_allowed_by_topic_then_cluster_then_file() -> None:
    name = "unclean.leader.election.enable"
    assert unclean_allowed(EMPTY_IMAGE, "t", True)
    cluster = ClusterImage(configs={(4, ""): {name: "false"}})
    assert not unclean_allowed(cluster, "t", True)
    topic = ClusterImage(configs={(4, ""): {name: "false"}, (2, "t"): {name: "TRUE"}})
    assert unclean_allowed(topic, "t", False)
    assert not unclean_allowed(topic, "u", True)


def test_min_in_sync_is_the_topics_then_the_clusters_then_the_files_and_never_more_than_the_replicas() -> None:
    name = "min.insync.replicas"
    three = TopicImage(DIR, "t", (PartitionImage((1, 2, 3), (1,), 1),))
    assert min_in_sync(EMPTY_IMAGE, three, 2) == 2
    cluster = ClusterImage(configs={(4, ""): {name: "3"}})
    assert min_in_sync(cluster, three, 2) == 3
    topic = ClusterImage(configs={(4, ""): {name: "3"}, (2, "t"): {name: "1"}})
    assert min_in_sync(topic, three, 2) == 1
    many = ClusterImage(configs={(2, "t"): {name: "9"}})
    assert min_in_sync(many, three, 2) == 3
