"""The measuring tools against a node: that they count right, not how fast it is."""

from __future__ import annotations

from tests.node.console_tools import run
from tidelog.testing import Broker


def test_what_is_produced_is_consumed_and_counted() -> None:
    with Broker() as broker:
        where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "measured", "--num-records", "500"]
        sent = run("producer-perf", *where, "--record-size", "1024", "--throughput", "-1", "--warmup-records", "100")
        assert sent.returncode == 0, sent.stderr
        whole, steady = sent.stdout.decode().splitlines()
        assert whole.startswith("500 records sent, ")
        assert steady.startswith("400 steady state records sent, ")
        got = run("consumer-perf", *where, "--hide-header")
        assert got.returncode == 0, got.stderr
        fields = got.stdout.decode().strip().split(", ")
        assert (fields[2], fields[4]) == ("0.4883", "500")


def test_a_payload_must_be_said_once() -> None:
    words = ["--bootstrap-server", "localhost:1", "--topic", "t", "--num-records", "1", "--throughput", "-1"]
    assert b"Exactly one of --record-size" in run("producer-perf", *words).stderr
