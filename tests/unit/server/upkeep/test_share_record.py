"""/facts/share-record: for readers who may describe the group and the topic, and only for whole questions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.share_talk import create, produce
from tests.unit.server.upkeep.test_http_security import TOKEN, Client, basic, private
from tests.unit.server.upkeep.test_monitoring import with_node
from tidelog.server.node import Node
from tidelog.server.upkeep.share_record import Asked, asked_for

PAGE = "/facts/share-record"
ASKED = f"{PAGE}?group=g&topic=t&partition=0&offset=1"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("group=g&topic=t&partition=0&offset=1", Asked("g", "t", 0, 1)),
        ("offset=1&group=a%20%26b&topic=t&partition=2", Asked("a &b", "t", 2, 1)),
        ("", None),
        ("group=g&topic=t&partition=0", None),
        ("group=&topic=t&partition=0&offset=1", None),
        ("group=g&topic=t&partition=-1&offset=1", None),
        ("group=g&topic=t&partition=0&offset=1e3", None),
        ("group=g&topic=t&partition=0&offset=99999999999999999999", None),
        ("group=g&topic=t&partition=0&offset=9999999999999999999", None),
        (f"group=g&topic={'t' * 250}&partition=0&offset=1", None),
        ("group=g&topic=t&partition=0&offset=1&more=2", None),
        ("group=g&group=h&topic=t&partition=0&offset=1", None),
        ("group=g&topic=t&partition=0&offset=1&offset=2", None),
    ],
)
def test_a_question_is_whole_or_none(query: str, found: Asked | None) -> None:
    assert asked_for(query) == found


def make(port: int) -> None:
    talk = Talk(port)
    create(talk, "t")
    produce(talk, "t", 3)
    talk.close()


def test_a_node_says_what_it_leads(tmp_path: Path) -> None:
    async def ask(node: Node) -> None:
        await asyncio.to_thread(make, node.ports["PLAINTEXT"])
        client = Client(node, None)
        assert await client.get(PAGE) == 400
        assert await client.get(ASKED.replace("topic=t", "topic=u")) == 404
        assert await client.get(ASKED.replace("partition=0", "partition=1")) == 404
        status, body, _ = await client.whole(ASKED)
        page: dict[str, Any] = json.loads(body)
        assert (status, page["schema"], page["record"]["offset"]) == (200, 1, 1)
        assert (page["leader"]["high_watermark"], page["leader"]["share"], page["stored"]) == (3, None, None)
        assert page["settings"]["delivery_count_limit"] == 5
        assert await client.get(PAGE + "/trusted?group=g&topic=t&partition=0&offset=1") == 404, "for other processes only"

    with_node(tmp_path, ask)


def test_a_reader_needs_rights_on_the_group_and_on_the_topic(tmp_path: Path) -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:console",
        "tidelog.http.bearer.token.file": private(tmp_path / "token", TOKEN + "\n"),
        "tidelog.http.basic.credentials.file": private(tmp_path / "users", "console:pw\nguest:pw\n"),
    }

    async def ask(node: Node) -> None:
        client = Client(node, None)
        found = [await client.get(ASKED, who) for who in (None, basic("guest:pw"), f"Bearer {TOKEN}", basic("console:pw"))]
        assert found == [401, 403, 403, 404], "whether there is such a topic is for those who may describe it"

    with_node(tmp_path, ask, **settings)
