"""Every API that is served can be refused, at every version, with bytes that its clients can read."""

from __future__ import annotations

import random

import pytest

from tests.unit.protocol.random_messages import Maker, message_named
from tidelog import testing
from tidelog.broker.api import Api
from tidelog.broker.apis import API_TABLE
from tidelog.broker.context import Broker, Context
from tidelog.model.errors import ErrorCode
from tidelog.protocol import registry
from tidelog.testing.error_answers import refuse

CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def broker() -> Broker:
    with testing.Broker() as running:
        running.create_topic("t")
        node = running._node
        assert node is not None
        return node.broker


@pytest.mark.parametrize("row", API_TABLE, ids=lambda row: row.key.name)
def test_a_refusal_can_be_encoded_and_says_the_error(broker: Broker, row: Api) -> None:
    request_class = registry.request_class(row.key)
    response_class = registry.response_class(row.key)
    said = 0
    cases = [(version, seed) for version in range(row.versions[0], row.versions[1] + 1) for seed in range(4)]
    for version, seed in cases:
        ctx = Context(broker, listener="PLAINTEXT", peer_host="127.0.0.1")
        ctx.api_version = version
        body = Maker(message_named(request_class.NAME), version, random.Random(seed), tame=True).make().encode(version)
        request = row.read(memoryview(body), 0, version) if row.read else request_class.decode(body, version)
        try:
            answer = refuse(row, ctx, request, CODE)
        except ValueError as problem:
            assert "drop the connection instead" in str(problem)
            return
        encoded = answer.encode(version)
        said += str(int(CODE)) in repr(response_class.decode(encoded, version)) or not encoded
    assert said, "no version said the error"
