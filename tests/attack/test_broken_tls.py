"""Broken TLS handshakes against a node in a process of its own: each ends with an alert or a close, and nothing else does."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.attack.broken_tls import Case, cases, outcome
from tests.attack.clients import METADATA, answer, log_in
from tests.attack.nodes import AUTHORITY, USERS, Secured, secured_node

CLIENT = AUTHORITY.issue("client")
USER, PASSWORD = next(iter(USERS.items()))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory: Path = tmp_path_factory.mktemp("node")
    (directory / "authority.pem").write_text(AUTHORITY.pem)
    more = {
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(directory / "authority.pem"),
        "listener_name_ssl_ssl_client_auth": "required",
    }
    with secured_node(directory, **more) as secured:
        yield secured


@pytest.fixture(scope="module")
def context() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=AUTHORITY.pem)


def ending(node: Secured, case: Case) -> str:
    return outcome(node.tls if case.shows else node.sasl_tls, case, (CLIENT.chain, CLIENT.key))


@pytest.fixture(scope="module")
def waiting(node: Secured) -> Iterator[dict[str, Future[str]]]:
    """The endings of cases in which the node waits; the other cases run meanwhile."""
    slow = [case for case in cases() if case.waits]
    with ThreadPoolExecutor(len(slow)) as beside:
        yield {case.name: beside.submit(ending, node, case) for case in slow}


@pytest.mark.parametrize("case", sorted(cases(), key=lambda case: case.waits), ids=lambda case: case.name)
def test_a_broken_handshake_ends_and_disturbs_no_one(
    node: Secured, context: ssl.SSLContext, waiting: dict[str, Future[str]], case: Case
) -> None:
    bystander = log_in(node.sasl, USER, PASSWORD)
    secured = log_in(node.sasl_tls, USER, PASSWORD, context)
    ended = waiting[case.name].result() if case.waits else ending(node, case)
    print(f"{case.name}: {ended}")
    for connection in (bystander, secured, log_in(node.sasl_tls, USER, PASSWORD, context)):
        connection.sendall(METADATA)
        assert answer(connection)
        connection.close()


def test_a_handshake_that_nothing_breaks_is_served(node: Secured) -> None:
    """The cases fail because of what they change."""
    for shows in (False, True):
        for versions in (((3, 3), (3, 3)), ((3, 4), (3, 4))):
            whole = Case("whole", lambda kind, data: [(kind, data)], versions, shows)
            with pytest.raises(AssertionError, match="the node served the client"):
                outcome(node.tls if shows else node.sasl_tls, whole, (CLIENT.chain, CLIENT.key))
