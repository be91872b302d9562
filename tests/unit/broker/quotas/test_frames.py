from __future__ import annotations

import pytest

from tidelog.broker.answer_types import Part
from tidelog.broker.quotas.frames import told_wait, with_wait
from tidelog.broker.table import BROKER_APIS
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.fastpath import ProduceResult, encode_produce_response
from tidelog.protocol.framing import decode_response_header, encode_response_message, response_header_is_flexible
from tidelog.protocol.messages.produce import ProduceResponse

SERVED = [
    (key, version) for key, served in BROKER_APIS.items() for version in range(served.api.versions[0], served.api.versions[1] + 1)
]


def body(parts: list[Part], api_key: int, version: int) -> memoryview:
    frame = b"".join(part for part in parts if isinstance(part, bytes | bytearray | memoryview))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, position = decode_response_header(frame[4:], response_header_is_flexible(api_key, version))
    assert correlation_id == 77
    return memoryview(frame)[4 + position :]


@pytest.mark.parametrize(("api_key", "version"), SERVED, ids=lambda each: each.name if isinstance(each, ApiKey) else str(each))
def test_an_answer_of_any_api_says_how_long_to_wait_where_it_can(api_key: int, version: int) -> None:
    cls = registry.response_class(api_key)
    frame = bytes(encode_response_message(77, api_key, version, cls()))
    answer = cls.decode(body(with_wait(api_key, version, [frame], 4321), api_key, version), version)
    expected = cls.decode(body([frame], api_key, version), version)
    if "throttle_time_ms" in cls.__slots__ and getattr(answer, "throttle_time_ms") == 4321:  # noqa: B009
        expected.throttle_time_ms = 4321  # type: ignore[attr-defined]
    assert answer == expected


def test_which_versions_can_say_so() -> None:
    for api_key, version, can in (
        (ApiKey.HEARTBEAT, 0, False),
        (ApiKey.HEARTBEAT, 1, True),
        (ApiKey.API_VERSIONS, 0, False),
        (ApiKey.API_VERSIONS, 4, True),
        (ApiKey.OFFSET_DELETE, 0, True),
        (ApiKey.METADATA, 13, True),
    ):
        cls = registry.response_class(api_key)
        parts = with_wait(api_key, version, [bytes(encode_response_message(77, api_key, version, cls()))], 5)
        answer = cls.decode(body(parts, api_key, version), version)
        assert (getattr(answer, "throttle_time_ms") == 5) is can, (api_key, version)  # noqa: B009


def test_a_produce_with_a_new_leader_keeps_it() -> None:
    results = [ProduceResult(0, error_code=6, current_leader=(2, 5)), ProduceResult(1, record_errors=[(3, "no")])]
    frame = encode_produce_response(77, 12, [("t", b"\0" * 16, results)], node_endpoints=[(2, "host", 9092, None)])  # type: ignore[list-item]
    before = ProduceResponse.decode(body([frame], ApiKey.PRODUCE, 12), 12)
    after = ProduceResponse.decode(body(with_wait(ApiKey.PRODUCE, 12, [frame], 9), ApiKey.PRODUCE, 12), 12)
    assert after.throttle_time_ms == 9
    after.throttle_time_ms = 0
    assert after == before


def test_parts_that_are_others_too_are_not_written_to() -> None:
    frame = bytearray(encode_response_message(77, ApiKey.METADATA, 12, registry.response_class(ApiKey.METADATA)()))
    kept = bytes(frame)
    parts = with_wait(ApiKey.METADATA, 12, [frame[:9], frame[9:]], 6)
    assert bytes(frame) == kept
    assert told_wait(ApiKey.METADATA, 12, parts) == 6
    assert told_wait(ApiKey.METADATA, 12, [frame]) == 0
