from __future__ import annotations

import pytest

from tidelog.cli.processes.layout import Process, lay_out, shrunk
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "10",
    "listeners": "PLAINTEXT://one.example:9092,CONTROLLER://one.example:9093",
    "controller.listener.names": "CONTROLLER",
}


def laid_out(given: dict[str, str], count: int = 2, dirs: tuple[str, ...] = ("/d",), port: int = 0) -> tuple[Process, ...]:
    return lay_out(BrokerConfig(given), dirs, count, port)


def may_start(given: dict[str, str], processes: tuple[Process, ...]) -> None:
    for each in processes:
        BrokerConfig.from_properties({**given, **each.settings})


def test_without_roles_the_first_process_has_the_controller_on_loopback() -> None:
    first, second = laid_out({})
    assert first.settings["process.roles"] == "broker,controller"
    assert first.settings["listeners"] == "PLAINTEXT://localhost:9102,CONTROLLER://localhost:9093"
    assert first.log_dirs == ("/d",) and "log.dirs" not in first.settings
    assert second.settings["process.roles"] == "broker"
    assert second.settings["listeners"] == "PLAINTEXT://localhost:9112"
    assert second.settings["log.dirs"] == "/d/processes/2"
    assert {each.settings["controller.quorum.voters"] for each in (first, second)} == {"1@localhost:9093"}
    assert [each.settings["offsets.topic.replication.factor"] for each in laid_out({}, 3)] == ["2", "2", "2"]
    may_start({}, (first, second))


def test_settings_of_the_file_win_over_those_that_are_left_to_us() -> None:
    first, _ = laid_out({"offsets.topic.replication.factor": "1"})
    assert "offsets.topic.replication.factor" not in first.settings


def test_the_controller_of_the_file_stays_where_it_is_and_the_others_find_it() -> None:
    first, second, third = laid_out(COMBINED, 3)
    assert first.settings["listeners"] == "PLAINTEXT://one.example:9102,CONTROLLER://one.example:9093"
    assert "controller.quorum.bootstrap.servers" not in first.settings
    assert third.settings["controller.quorum.bootstrap.servers"] == "one.example:9093"
    assert [each.node_id for each in (first, second, third)] == [10, 11, 12]
    may_start(COMBINED, (first, second, third))


def test_brokers_of_a_quorum_elsewhere_are_brokers() -> None:
    given = {**COMBINED, "process.roles": "broker", "listeners": "PLAINTEXT://:9092"}
    given["controller.quorum.bootstrap.servers"] = "two.example:9093"
    processes = laid_out(given)
    assert [each.settings["process.roles"] for each in processes] == ["broker", "broker"]
    assert all("controller.quorum.bootstrap.servers" not in each.settings for each in processes)
    may_start(given, processes)


def test_what_clients_are_told_is_shifted_like_the_listeners() -> None:
    given = {
        "listeners": "PLAINTEXT://:9092,OTHER://:9095",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://public.example:19092,OTHER://[::1]:0",
        "tidelog.processes.port.step": "100",
    }
    first, second = laid_out(given)
    assert first.settings["listeners"] == "PLAINTEXT://:9192,OTHER://:9195,CONTROLLER://localhost:9093"
    assert second.settings["advertised.listeners"] == "PLAINTEXT://public.example:19292,OTHER://[::1]:0"
    may_start(given, (first, second))


def test_each_process_has_its_own_files() -> None:
    given = {"metadata.log.dir": "/b/", "tidelog.audit.file": "/var/audit", "broker.id": "3"}
    first, second = laid_out(given, dirs=("/a", "/b/"))
    assert not {"log.dirs", "metadata.log.dir", "tidelog.audit.file"} & set(first.settings)
    assert second.settings["log.dirs"] == "/a/processes/4,/b/processes/4"
    assert second.settings["metadata.log.dir"] == "/b/processes/4"
    assert second.settings["tidelog.audit.file"] == "/var/audit.node-4"
    assert (first.settings["broker.id"], second.settings["broker.id"]) == ("3", "4")


def test_ports_that_are_left_to_the_system_stay_so() -> None:
    first, second = laid_out({"listeners": "PLAINTEXT://localhost:0"}, port=4711)
    assert first.settings["listeners"] == "PLAINTEXT://localhost:0,CONTROLLER://localhost:4711"
    assert second.settings["listeners"] == "PLAINTEXT://localhost:0"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"process.roles": "controller", "listeners": "CONTROLLER://:9093"}, "has no use for more than one core"),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://:0"}, "listeners gives the controller port 0"),
        ({"listeners": "PLAINTEXT://:65530,CONTROLLER://:9093"}, "leaves no port for each process"),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9112"}, "Port 9112 would be that of CONTROLLER of the controller and of"),
        ({"node.id": ""}, "node.id"),
    ],
)
def test_what_several_processes_cannot_be_is_refused(change: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        laid_out({**COMBINED, **change})


def test_a_file_with_roles_needs_a_node_id() -> None:
    with pytest.raises(ConfigError, match=r"node\.id is not set"):
        laid_out({name: value for name, value in COMBINED.items() if name != "node.id"})


def test_acls_need_a_controller_that_knows_who_asks() -> None:
    with pytest.raises(ConfigError, match=r"process\.roles is not"):
        laid_out({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"})


def test_fewer_processes_than_have_data_are_refused_with_the_way_there() -> None:
    assert shrunk({2, 3}, 1, 3, ("/d",), "h:9092") is None
    assert shrunk(set(), 1, 1, ("/d",), "h:9092") is None
    told = str(shrunk({2, 3, 4}, 1, 2, ("/d",), "h:9092"))
    assert "also has the data of nodes 3, 4, and --processes is 2" in told
    assert "start with --processes 4" in told and "tidelog drain 4 --bootstrap-server h:9092" in told
    assert "remove /d/processes/4, start with --processes 3" in told and "unregister --id 4" in told
