from __future__ import annotations

import pytest

from tidelog.client.connection import ClientConnection, UnsupportedByBroker
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import decode_request_header, encode_response_message
from tidelog.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from tidelog.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataResponse


def welcomed(*served: tuple[int, int, int]) -> ClientConnection:
    """A connection to a broker that serves (key, first, last)."""
    connection = ClientConnection("me")
    connection.hello()
    table = [ApiVersion(api_key=key, min_version=first, max_version=last) for key, first, last in served]
    data = encode_response_message(0, ApiKey.API_VERSIONS, 4, ApiVersionsResponse(api_keys=table))
    (response,) = connection.receive(bytes(data))
    assert connection.welcomed(response) is None
    return connection


def test_the_first_request_asks_for_the_versions() -> None:
    header, _ = decode_request_header(ClientConnection("me", "1.2").hello()[4:])
    assert (header.api_key, header.api_version, header.client_id) == (18, 4, "me")


def test_a_broker_that_knows_only_old_versions_is_asked_again_in_one_that_all_know() -> None:
    connection = ClientConnection("me")
    connection.hello()
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ApiVersion(18, 0, 2)])
    (response,) = connection.receive(bytes(encode_response_message(0, ApiKey.API_VERSIONS, 0, refusal)))
    again = connection.welcomed(response)
    assert again is not None
    header, position = decode_request_header(again[4:])
    assert header.api_version == 0
    ApiVersionsRequest.decode(again[4 + position :], 0)
    answer = ApiVersionsResponse(api_keys=[ApiVersion(3, 0, 5)])
    (response,) = connection.receive(bytes(encode_response_message(1, ApiKey.API_VERSIONS, 0, answer)))
    assert connection.welcomed(response) is None
    assert connection.version_of(ApiKey.METADATA) == 5


def test_the_highest_version_that_both_know_is_used() -> None:
    connection = welcomed((3, 0, 9), (19, 2, 99))
    assert connection.version_of(ApiKey.METADATA) == 9
    assert connection.version_of(ApiKey.CREATE_TOPICS) == 7
    header, _ = decode_request_header(connection.request(MetadataRequest(topics=None))[4:])
    assert (header.api_key, header.api_version) == (3, 9)


@pytest.mark.parametrize("served", [(), ((3, 14, 20),)])
def test_without_a_common_version_the_api_is_not_to_be_had(served: tuple[tuple[int, int, int], ...]) -> None:
    with pytest.raises(UnsupportedByBroker, match="METADATA"):
        welcomed(*served).version_of(ApiKey.METADATA)


def test_a_response_may_come_in_pieces() -> None:
    connection = welcomed((3, 0, 13))
    connection.request(MetadataRequest(topics=None))
    data = bytes(encode_response_message(1, ApiKey.METADATA, 13, MetadataResponse(cluster_id="c")))
    assert connection.receive(data[:7]) == []
    (response,) = connection.receive(data[7:])
    assert response.cluster_id == "c"


def test_an_answer_to_something_else_is_a_violation() -> None:
    connection = welcomed((3, 0, 13))
    connection.request(MetadataRequest(topics=None))
    answer = bytes(encode_response_message(9, ApiKey.METADATA, 13, MetadataResponse()))
    with pytest.raises(ProtocolViolation, match="answers request 9, asked was 1"):
        connection.receive(answer)
    with pytest.raises(ProtocolViolation, match="that no request asked for"):
        connection.receive(answer)


def test_a_refused_hello_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="INVALID_REQUEST"):
        ClientConnection("me").welcomed(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))


def test_a_response_is_decoded_where_it_came_in() -> None:
    connection = welcomed((1, 4, 18))
    connection.request(FetchRequest())
    part = PartitionData(partition_index=0, records=b"r" * 10_000)
    answer = FetchResponse(responses=[FetchableTopicResponse(topic_id=b"i" * 16, partitions=[part])])
    data = bytes(encode_response_message(1, ApiKey.FETCH, 18, answer))
    found: list[FetchResponse] = []
    while data:
        room = connection.writable()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        data = data[count:]
        found += connection.received(count)
    records = found[0].responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert bytes(records) == b"r" * 10_000


def test_a_response_larger_than_the_limit_is_a_violation() -> None:
    connection = ClientConnection("me", max_response_bytes=1000)
    with pytest.raises(ProtocolViolation, match="1001"):
        connection.receive((1001).to_bytes(4, "big"))


def test_requests_go_out_at_a_lower_version_where_that_is_asked_for_and_features_are_kept() -> None:
    connection = ClientConnection("c")
    connection.hello()
    served = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=0, min_version=3, max_version=13)],
        finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=2)],
    )
    connection.welcomed(served)
    assert connection.features == {"transaction.version": 2}
    assert [connection.version_of(0), connection.version_of(0, 11)] == [13, 11]
    with pytest.raises(UnsupportedByBroker):
        connection.version_of(0, 2)
