"""Names on /facts are for readers who may describe the cluster."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.upkeep.test_http_security import TOKEN, Client, basic, private
from tests.unit.server.upkeep.test_monitoring import with_node
from tidelog.metrics.facts import FACTS
from tidelog.server.node import Node
from tidelog.server.upkeep.facts_page import bounded

ACLS = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def files(tmp_path: Path) -> dict[str, str]:
    return {
        "tidelog.http.bearer.token.file": private(tmp_path / "token", TOKEN + "\n"),
        "tidelog.http.basic.credentials.file": private(tmp_path / "users", "console:pw\nguest:pw\n"),
    }


async def names(client: Client, authorization: str | None) -> bool:
    status, body, _ = await client.whole("/facts", authorization)
    assert status == 200
    page = json.loads(body)
    busiest = page["clients"]["busiest"]
    assert busiest, "the producer asked"
    assert all((each["client_id"] is not None) == page["names"] for each in busiest)
    assert all(each["requests"] > 0 for each in busiest), "numbers are for every reader"
    return bool(page["names"])


def produce(port: int) -> None:
    from confluent_kafka.admin import AdminClient

    AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "client.id": "asker"}).list_topics(timeout=20)


def seen(tmp_path: Path, readers: dict[str | None, bool], **settings: str) -> None:
    async def talk(node: Node) -> None:
        await asyncio.to_thread(produce, node.ports["PLAINTEXT"])
        client = Client(node, None)
        found = {reader: await names(client, reader) for reader in readers}
        assert found == readers

    with_node(tmp_path, talk, **settings)


def test_without_an_authorizer_each_reader_sees_names(tmp_path: Path) -> None:
    seen(tmp_path, {None: True})


def test_the_authorizer_decides_by_the_principal_of_the_reader(tmp_path: Path) -> None:
    readers: dict[str | None, bool] = {f"Bearer {TOKEN}": False, basic("console:pw"): True, basic("guest:pw"): False}
    seen(tmp_path, readers, **ACLS, **files(tmp_path), **{"super.users": "User:console"})


def test_a_token_counts_as_the_principal_of_the_settings(tmp_path: Path) -> None:
    settings = {
        **ACLS,
        **files(tmp_path),
        "super.users": "User:monitoring",
        "tidelog.http.bearer.token.principal": "User:monitoring",
    }
    seen(tmp_path, {f"Bearer {TOKEN}": True, basic("guest:pw"): False}, **settings)


def test_a_reader_without_a_login_is_anonymous(tmp_path: Path) -> None:
    seen(tmp_path, {None: False}, **ACLS)
    seen(tmp_path / "b", {None: True}, **ACLS, **{"super.users": "User:ANONYMOUS"})


def value_at(path: str, text: str) -> Any:
    """A page with one text."""
    head, _, rest = path.partition(".")
    inner = value_at(rest, text) if rest else text
    name = head.removesuffix("[]")
    return {name: [inner] if head.endswith("[]") else inner}


@pytest.mark.parametrize("path", [fact.path for fact in FACTS if fact.names])
def test_each_name_of_the_table_is_null_for_others(path: str) -> None:
    ((section, value),) = value_at(path, "secret").items()
    assert "secret" in json.dumps(bounded(value, section, names=True))
    hidden = json.dumps(bounded(value, section, names=False))
    assert "secret" not in hidden
    assert "null" in hidden
