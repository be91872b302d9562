"""Clients of other people over TLS, mutual TLS and SASL_SSL with each mechanism that they have, and sessions that end under load.

``TIDELOG_LONG=1`` (``make security``) adds franz-go, the other version of TLS in each case, and each mechanism under load.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.interop.availability import unavailable
from tests.interop.java import JavaSide
from tests.interop.secured_clients import (
    RENEWING_KINDS,
    Aiokafka,
    FranzGo,
    Java,
    KafkaPython,
    Librdkafka,
    SecuredClient,
    Tidelog,
    Writer,
)
from tests.interop.secured_node import KINDS, LIMIT_S, PASSWORD, SESSION_MS, TLS_VERSIONS, SecuredNode, secured_node
from tools.jars import JarsMissing

pytestmark = pytest.mark.interop

LONG = bool(os.environ.get("TIDELOG_LONG"))
OLD, NEW = TLS_VERSIONS
CLIENTS = (Java, Librdkafka, Aiokafka, KafkaPython, FranzGo) if LONG else (Java, Librdkafka, Aiokafka, KafkaPython)
CASES = [
    (client.name, kind, version)
    for client in CLIENTS
    for kind in client.kinds
    for version in TLS_VERSIONS
    if LONG or version == (OLD if kind == "SSL" else NEW)
]
BIG = b"0123456789abcdef" * 40_000
"""More than a TLS record, a socket's buffer and a transport's turn."""
LOAD_S = 2.5 * SESSION_MS / 1000
BEARER_S = 15.0
"""librdkafka looks once a second whether 80 % of a token's life are over, and logs in again after 90 % of the session."""
SESSION_OVER = "did not authenticate again"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    with secured_node(tmp_path_factory.mktemp("secured")) as started:
        started.create("-".join(case).replace(" ", "-") for case in CASES)
        yield started


@pytest.fixture(scope="module")
def make(java: JavaSide) -> Callable[[str], SecuredClient]:
    """The client of that name."""
    franz: list[FranzGo] = []

    def made(name: str) -> SecuredClient:
        if name == FranzGo.name:
            try:
                franz[:] = franz or [FranzGo()]
            except JarsMissing as missing:
                unavailable(missing)
            return franz[0]
        others: dict[str, Callable[[], SecuredClient]] = {
            "java": lambda: Java(java),
            "librdkafka": Librdkafka,
            "aiokafka": Aiokafka,
            "kafka-python": KafkaPython,
        }
        return others[name]()

    return made


@pytest.mark.parametrize(("name", "kind", "version"), CASES)
def test_a_client_writes_and_reads(
    name: str, kind: str, version: str, secured: SecuredNode, make: Callable[[str], SecuredClient]
) -> None:
    topic = "-".join((name, kind, version)).replace(" ", "-")
    assert make(name).round_trip(secured, kind, version, topic, [b"v", BIG]) == [b"v", BIG]


@pytest.mark.parametrize("version", TLS_VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_our_client_logs_in(kind: str, version: str, secured: SecuredNode) -> None:
    assert "java-SSL-TLSv1.2" in Tidelog().topics(secured, kind, version)


def renewed(secured: SecuredNode, java: JavaSide, reads: str, writers: list[tuple[Writer, str, str]], name: str) -> None:
    """Each writer writes, and Java's consumer reads what the first of them writes, over two sessions and more: nothing is
    refused, lost, or sent over a new connection because of it."""
    node_log = secured.node.log_file
    version = writers[0][2]
    topics = [f"{name}-{reads}-{version}-{number}-{uuid4().hex[:8]}" for number in range(len(writers))]
    secured.create(topics)
    said = len(node_log.read_text())
    with ThreadPoolExecutor(len(writers) + 1) as beside:
        written = [
            beside.submit(writer.write, secured, kind, tls, topic, LOAD_S)
            for topic, (writer, kind, tls) in zip(topics, writers, strict=True)
        ]
        reading = beside.submit(Java(java).read_under_load, secured, reads, version, topics[0], LOAD_S + 1)
        offsets = [each.result(LOAD_S + 2 * LIMIT_S) for each in written]
        read = reading.result(LOAD_S + 2 * LIMIT_S)
    for each in offsets:
        assert each == list(range(len(each)))
        assert len(each) > 1
    assert 0 < read <= len(offsets[0])
    assert SESSION_OVER not in node_log.read_text()[said:]


def test_clients_log_in_again_under_load(secured: SecuredNode, java: JavaSide) -> None:
    """Those that can, at the same time, by a mechanism each."""
    writers: list[tuple[Writer, str, str]] = [
        (Librdkafka(), "PLAIN", NEW),
        (Librdkafka(), "OAUTHBEARER", NEW),
        (KafkaPython(), "SCRAM-SHA-256", OLD),
        (Tidelog(), "OAUTHBEARER", OLD),
    ]
    renewed(secured, java, "SCRAM-SHA-512", writers, "mixed")


@pytest.mark.skipif(not LONG, reason="one mix of mechanisms is tried above; each of them by make security")
@pytest.mark.parametrize("version", TLS_VERSIONS)
@pytest.mark.parametrize("kind", RENEWING_KINDS)
def test_clients_log_in_again_under_load_by_each_mechanism(kind: str, version: str, secured: SecuredNode, java: JavaSide) -> None:
    writers: list[tuple[Writer, str, str]] = [(each, kind, version) for each in (Librdkafka(), KafkaPython(), Tidelog())]
    renewed(secured, java, kind, writers, "alike")


@pytest.mark.skipif(not LONG, reason="franz-go belongs to make security")
@pytest.mark.parametrize("version", TLS_VERSIONS)
@pytest.mark.parametrize("kind", RENEWING_KINDS)
def test_franz_go_loses_no_record_when_sessions_end(
    kind: str, version: str, secured: SecuredNode, make: Callable[[str], SecuredClient]
) -> None:
    """It logs in again in the last 2 to 5 % of a session: a request that is late then costs it the connection, and no record."""
    franz = make("franz-go")
    assert isinstance(franz, FranzGo)
    topic = f"franz-{kind}-{version}"
    secured.create([topic])
    offsets = franz.write(secured, kind, version, topic, LOAD_S)
    assert offsets == list(range(len(offsets)))
    assert len(offsets) > 1


@pytest.mark.skipif(not LONG, reason="sessions that end with their token take their time")
def test_librdkafka_gets_new_tokens_under_load(secured: SecuredNode) -> None:
    said = len(secured.node.log_file.read_text())
    secured.create(["tokens"])
    offsets = Librdkafka(BEARER_S).write(secured, "OAUTHBEARER", NEW, "tokens", 2.5 * BEARER_S)
    assert offsets == list(range(len(offsets)))
    assert SESSION_OVER not in secured.node.log_file.read_text()[said:]


def test_every_way_to_log_in_is_tried_and_leaves_no_secret_in_the_log(secured: SecuredNode) -> None:
    assert {kind for _, kind, _ in CASES} == set(KINDS)
    said = secured.node.log_file.read_text()
    assert PASSWORD not in said
    assert secured.token.password not in said
    assert secured.node.complaints() == []
