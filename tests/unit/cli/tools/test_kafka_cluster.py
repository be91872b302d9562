"""kafka-cluster: its lines, against a node."""

from click.testing import CliRunner, Result

from tidelog.cli.tools.kafka_cluster import group, table
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker


def run(server: str, *words: str) -> Result:
    return CliRunner().invoke(group, [*words, "--bootstrap-server", server])


def test_the_cluster_has_an_id_and_endpoints(server: str) -> None:
    assert run(server, "cluster-id").stdout.startswith("Cluster ID: ")
    port = server.rpartition(":")[2]
    titles, row = run(server, "list-endpoints", "--include-fenced-brokers").stdout.splitlines()
    assert titles.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert row.split() == ["1", "127.0.0.1", port, "null", "unfenced", "broker"]


def test_a_broker_that_is_not_registered_cannot_be_forgotten(server: str) -> None:
    result = run(server, "unregister", "--id", "9")
    assert (result.exit_code, "BROKER_ID_NOT_REGISTERED" in result.stderr) == (1, True)


def test_controllers_know_no_fenced_brokers() -> None:
    result = CliRunner().invoke(group, ["list-endpoints", "--bootstrap-controller", "nowhere:1", "--include-fenced-brokers"])
    assert (result.exit_code, "give --bootstrap-server" in result.stderr) == (2, True)


def test_columns_are_kafkas() -> None:
    """As Apache Kafka's tool printed them for the same nodes."""
    nodes = [
        DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=22001, rack="RACK2", is_fenced=True),
        DescribeClusterBroker(broker_id=0, host="127.0.0.1", port=22000, rack="RACK1"),
    ]
    assert table(nodes, "broker").splitlines() == [
        "ID         HOST      PORT       RACK  STATE      ENDPOINT_TYPE  ",
        "0          127.0.0.1 22000      RACK1 unfenced   broker         ",
        "1          127.0.0.1 22001      RACK2 fenced     broker         ",
    ]
    assert table([DescribeClusterBroker(broker_id=0, host="127.0.0.1", port=22100)], "controller").splitlines() == [
        "ID         HOST      PORT       RACK       ENDPOINT_TYPE  ",
        "0          127.0.0.1 22100      null       controller     ",
    ]
