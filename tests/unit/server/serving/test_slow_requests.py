"""The lines of slow requests: what they name, and how many there are."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.unit.cli.running_node import node_in_a_thread
from tidelog.broker.request import Session
from tidelog.broker.request_times import SlowRequest
from tidelog.security.principal import KafkaPrincipal
from tidelog.server.serving.slow_requests import SlowRequests, line

MS = 1_000_000
TIMES = tuple(each * MS for each in (1234, 1, 3, 1200, 0, 10, 20))


def slow(client_id: str | None = "app", on_purpose_ns: int = 0) -> SlowRequest:
    session = Session("SASL", "10.0.0.1", KafkaPrincipal("User", "bob"))
    return SlowRequest("Produce", 12, session, client_id, TIMES, on_purpose_ns)


def test_a_line_names_the_client_and_the_phases() -> None:
    assert line(slow(), "SASL") == (
        "slow request: Produce v12 of User:bob at 10.0.0.1 (client id 'app', listener SASL) took 1234.0 ms: request queue 1.0, "
        "local 3.0, remote 1200.0, throttle 0.0, response queue 10.0, response send 20.0"
    )
    assert "took 1234.0 ms, of which 500.0 on purpose: " in line(slow(on_purpose_ns=500 * MS), "L")


def test_a_client_id_can_neither_break_nor_flood_the_log() -> None:
    text = line(slow("x\n\x1b[31m" + "y" * 10_000), "L")
    assert text.isprintable()
    assert len(text) < 500
    assert "no client id" in line(slow(None), "L")


def test_five_a_second_are_logged_and_the_others_counted(caplog: pytest.LogCaptureFixture) -> None:
    now_ms = 0
    reports = SlowRequests("L", lambda: now_ms)
    for _ in range(12):
        reports.tell(slow())
    assert caplog.text.count("slow request: ") == 5
    now_ms = 1000
    reports.tell(slow())
    assert "listener L: 7 more slow requests were not logged" in caplog.text
    assert caplog.text.count("slow request: ") == 6


def test_the_setting_takes_effect_while_the_node_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    with node_in_a_thread(tmp_path) as node, caplog.at_level(logging.WARNING):
        (listener,) = node.listeners
        assert listener.times.slow_ns == 0
        servers = {"bootstrap.servers": f"127.0.0.1:{node.ports['PLAINTEXT']}"}
        admin = AdminClient(servers)
        entry = ConfigEntry("tidelog.slow.request.log.ms", "1", incremental_operation=AlterConfigOpType.SET)
        this_broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        for future in admin.incremental_alter_configs([this_broker]).values():
            future.result(20)
        while listener.times.slow_ns != MS:
            admin.list_topics(timeout=20)
        number = 0
        # The first one waits until the topic of the transaction coordinator has been created.
        while "slow request: " not in caplog.text:
            number += 1
            Producer({**servers, "transactional.id": f"t{number}"}).init_transactions(20)
    assert "User:ANONYMOUS at 127.0.0.1 (client id " in caplog.text
