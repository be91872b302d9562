"""How nodes are set up for judges. That they start: the judges' own runs."""

from __future__ import annotations

from pathlib import Path

from tidelog.config.resolve import BrokerConfig
from tidelog.raft.format import parse_initial_controllers
from tools.judged_nodes import initial_controllers, properties_of_several


def test_several_nodes_are_one_cluster_that_kafka_would_start_as_well() -> None:
    lines = properties_of_several(["num.partitions=4"], Path("/tmp/judged"), [1, 2, 3, 11, 12, 13])
    configs = [BrokerConfig.from_properties(dict(line.split("=", 1) for line in each)) for each in lines]
    assert [config.node_id for config in configs] == [0, 1, 2]
    assert [config.broker_rack for config in configs] == ["RACK1", "RACK2", "RACK3"]
    assert {config.num_partitions for config in configs} == {4}
    assert {config.offsets_topic_replication_factor for config in configs} == {3}
    assert [point.port for config in configs for point in config.endpoints] == [1, 11, 2, 12, 3, 13]


def test_nodes_with_scram_have_a_listener_besides_and_know_each_other_by_the_plain_one() -> None:
    lines = properties_of_several(["num.partitions=4"], Path("/tmp/judged"), [1, 2, 3, 11, 12, 13], [21, 22, 23])
    configs = [BrokerConfig.from_properties(dict(line.split("=", 1) for line in each)) for each in lines]
    assert [[point.port for point in config.endpoints] for config in configs] == [[1, 11, 21], [2, 12, 22], [3, 13, 23]]
    assert [[point.port for point in config.advertised_endpoints] for config in configs] == [[1, 21], [2, 22], [3, 23]]
    assert {config.inter_broker_listener for config in configs} == {"PLAINTEXT"}
    assert {config.protocol_map["SCRAM"] for config in configs} == {"SASL_PLAINTEXT"}


def test_their_controllers_are_the_first_voters() -> None:
    voters = parse_initial_controllers(initial_controllers([11, 12, 13]), "CONTROLLER").voters
    assert [(voter.voter_id, voter.endpoints[0].port) for voter in voters] == [(0, 11), (1, 12), (2, 13)]
    assert len({voter.directory_id for voter in voters}) == 3
