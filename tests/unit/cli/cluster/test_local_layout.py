"""Which nodes a cluster on one machine has."""

from dataclasses import replace
from pathlib import Path

import pytest

from tidelog.cli.cluster.local_layout import FILE, grown, load, new_cluster, properties, save, without
from tidelog.cli.refusal import CommandFailed
from tidelog.config.resolve import BrokerConfig


def made(count: int, *racks: str, **settings: str):
    return new_cluster("5L6g3nShT-eMCtK--X86sw", count, 9092, racks, settings)


@pytest.mark.parametrize(("count", "voters"), [(1, [1]), (2, [1]), (3, [1, 2, 3]), (5, [1, 2, 3])])
def test_three_nodes_vote_or_one(count: int, voters: list[int]) -> None:
    assert [node.id for node in made(count).nodes if node.founder] == voters


@pytest.mark.parametrize(
    ("before", "after", "controllers"), [(1, 2, [1]), (1, 3, [1, 2, 3]), (2, 4, [1, 3, 4]), (3, 5, [1, 2, 3])]
)
def test_one_voter_becomes_three_as_soon_as_there_are_nodes_for_it(before: int, after: int, controllers: list[int]) -> None:
    cluster = grown(made(before, "x", "y"), after)
    assert [node.id for node in cluster.nodes if node.controller] == controllers
    assert [node.id for node in cluster.nodes if node.founder] == [node.id for node in made(before).nodes if node.founder]
    assert [node.rack for node in cluster.nodes] == [("x", "y")[index % 2] for index in range(after)]
    assert len({port for node in cluster.nodes for port in (node.port, node.controller_port)}) == 2 * after


def test_a_cluster_that_is_large_enough_stays_as_it_is() -> None:
    assert grown(made(3), 2) == made(3)


def test_a_secured_cluster_is_kept_as_one_and_does_not_grow(tmp_path: Path) -> None:
    cluster = replace(made(3), client_file="admin.properties")
    save(str(tmp_path), cluster)
    assert load(str(tmp_path)) == cluster
    assert grown(cluster, 3) == cluster
    with pytest.raises(CommandFailed, match="is secured, and made for 3 nodes"):
        grown(cluster, 4)


def test_every_node_may_start_with_its_settings() -> None:
    cluster = grown(made(1, "x", "y", **{"num.partitions": "4"}), 4)
    for node in cluster.nodes:
        config = BrokerConfig.from_properties(properties(cluster, node, f"data-{node.id}"))
        assert (config.node_id, config.is_broker, config.is_controller) == (node.id, True, node.controller)
        assert (config.num_partitions, config.broker_rack, config.default_replication_factor) == (4, node.rack, 3)


def test_system_topics_are_as_safe_as_the_number_of_nodes_allows() -> None:
    for count, factor, min_isr in ((1, "1", "1"), (2, "2", "2"), (3, "3", "2"), (4, "3", "2")):
        found = properties(made(count), made(count).nodes[0], "data")
        assert found["offsets.topic.replication.factor"] == factor
        assert found["transaction.state.log.min.isr"] == min_isr


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert load(str(tmp_path)) is None
    cluster = made(3, "x", **{"a.b": "c"})
    save(str(tmp_path), cluster)
    assert load(str(tmp_path)) == cluster
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(CommandFailed, match="is not what tidelog cluster wrote"):
        load(str(tmp_path))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(CommandFailed, match="1 to 999 nodes, not 0"):
        made(0)
    with pytest.raises(CommandFailed, match="leaves no room for 3 nodes"):
        new_cluster("c", 3, 63534, (), {})
    with pytest.raises(CommandFailed, match="There is no node 9; the cluster has 1, 2, 3"):
        made(3).node(9)


def test_brokers_can_be_taken_out_and_controllers_not() -> None:
    assert [node.id for node in without(made(4), 4).nodes] == [1, 2, 3]
    with pytest.raises(CommandFailed, match="Node 3 is a controller"):
        without(made(4), 3)
