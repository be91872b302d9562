"""What is read of a cluster."""

from tests.unit.cli.cluster_stand_in import FakeCluster
from tidelog.cli.cluster.cluster_layout import cordon_of, min_isr_of, read_layout, see, set_cordon
from tidelog.console.moving.balance_plan import Held
from tidelog.console.moving.layout import Seen


def test_brokers_partitions_and_sizes_are_read():
    cluster = FakeCluster({("a", 0): (2, 1), ("b", 0): (3,)}, racks={1: "x", 2: "y", 3: None}, down=(3,), size=77)
    layout = read_layout(cluster)
    assert (layout.cluster_id, layout.racks, layout.down) == ("fake", {1: "x", 2: "y"}, {3: None})
    assert layout.seen == (Seen(("a", 0), 2, (2, 1), (2, 1)), Seen(("b", 0), None, (3,), ()))
    assert layout.held() == [Held(("a", 0), (2, 1), 77), Held(("b", 0), (3,), 0)]


def test_what_is_on_its_way_counts_where_it_goes():
    cluster = FakeCluster({("a", 0): (1, 2)}, slow=5)
    cluster.moving["a", 0] = (3, 2), 5
    assert read_layout(cluster).held() == [Held(("a", 0), (3, 2), 1000)]


def test_topics_that_are_gone_are_left_out():
    cluster = FakeCluster({("a", 0): (1,)})
    assert [each.partition for each in see(cluster, ["a"])] == [("a", 0)]


def test_a_cordon_is_set_read_and_taken_back():
    cluster = FakeCluster({("a", 0): (1,)})
    set_cordon(cluster, 2, "*")
    assert cordon_of(cluster, 2) == "*"
    assert read_layout(cluster).cordoned == (2,)
    set_cordon(cluster, 2, None)
    assert read_layout(cluster).cordoned == ()


def test_the_least_number_in_sync_is_a_setting_of_each_topic():
    cluster = FakeCluster({("a", 0): (1,)})
    cluster.settings[2, "a"] = {"min.insync.replicas": "2"}
    assert min_isr_of(cluster, ["a", "b"]) == {"a": 2}
    assert min_isr_of(cluster, []) == {}
