"""A client's side of one Kafka connection, sans-IO: requests become bytes, bytes become responses.

Versions are negotiated first: ``hello`` asks for them, and every later request is sent in the highest version that both sides
know. Responses arrive in the order of the requests; one that answers another request ends the connection.
"""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import (
    FrameReader,
    RequestHeader,
    decode_response_header,
    encode_request,
    response_header_is_flexible,
)
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.protocol.structure import Message

R = TypeVar("R")
MAX_RESPONSE_BYTES = 1 << 30
SENT_AT_MOST = {ApiKey.API_VERSIONS: 4, ApiKey.TXN_OFFSET_COMMIT: 5}
"""Versions above these are known but not sent: an ApiVersions that a broker does not know is answered in version 0, without
features, and version 6 of TxnOffsetCommit names topics by ids, which its callers do not have."""


class UnsupportedByBroker(Exception):
    """The broker does not serve the API, or only in versions that tidelog does not know."""


_STRANGERS = (
    (b"HTTP", "it answers HTTP: that is the port of a web server, give the port of a Kafka listener"),
    (b"\x15\x03", "it speaks TLS there: set {prefix}security.protocol to SSL or SASL_SSL"),
    (b"SSH-", "it answers SSH: give the port of a Kafka listener"),
)
"""First bytes of servers of other protocols; read as a frame size they would mean hundreds of megabytes."""


def check_speaks_kafka(head: bytes, prefix: str = "") -> None:
    """ProtocolViolation if the first bytes from a server belong to another protocol.

    ``prefix``: what users write before setting names.
    """
    for beginning, said in _STRANGERS:
        if head.startswith(beginning):
            raise ProtocolViolation(said.format(prefix=prefix))


class ClientConnection:
    """The state of one connection. The caller moves the bytes."""

    def __init__(
        self, client_id: str, software_version: str = "0", max_response_bytes: int = MAX_RESPONSE_BYTES, prefix: str = ""
    ) -> None:
        """``prefix``: what users write before setting names."""
        self._prefix = prefix
        self._client_id = client_id
        self._software_version = software_version
        self.next_correlation_id = 0
        """That of the next request."""
        self._waiting: deque[tuple[int, int, int]] = deque()
        self._reader = FrameReader(max_response_bytes, max_plain_bytes=max_response_bytes)
        self._served: dict[int, tuple[int, int]] | None = None
        self.session_ms: int | None = None
        """How long the last login holds, 0 for as long as the connection; None before the first one."""
        self.features: dict[str, int] = {}
        """Levels of the cluster's finalized features (KIP-584), as reported by the broker; empty if it is too old."""

    def hello(self) -> bytes:
        """The first frame: ApiVersions."""
        request = ApiVersionsRequest(client_software_name="tidelog", client_software_version=self._software_version)
        return self._encode(request, ApiKey.API_VERSIONS, SENT_AT_MOST[ApiKey.API_VERSIONS])

    def welcomed(self, response: ApiVersionsResponse) -> bytes | None:
        """Process the answer to ``hello``. A broker that does not know our ApiVersions version is asked again: send the
        returned bytes."""
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            return self._encode(ApiVersionsRequest(), ApiKey.API_VERSIONS, 0)
        if response.error_code != ErrorCode.NONE:
            raise ProtocolViolation(f"ApiVersions was answered with {ErrorCode(response.error_code).name}")
        self._served = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in response.finalized_features}
        return None

    def version_of(self, api_key: int, highest: int | None = None) -> int:
        """The version in which requests of this API are sent, at most ``highest``. UnsupportedByBroker if there is no common
        one."""
        assert self._served is not None, "say hello first"
        ours = registry.request_class(api_key)
        low, high = self._served.get(api_key, (0, -1))
        known = SENT_AT_MOST.get(ApiKey(api_key), ours.MAX_VERSION)
        version = min(high, known, known if highest is None else highest)
        if version < max(low, ours.MIN_VERSION):
            raise UnsupportedByBroker(f"the broker does not serve {ApiKey(api_key).name} in a version that is known here")
        return version

    def request(self, request: Message, highest: int | None = None) -> bytes:
        """The frame of ``request``, in version ``highest`` at most. ValueError if the version cannot encode it."""
        api_key: int = request.API_KEY  # type: ignore[attr-defined]
        return self._encode(request, api_key, self.version_of(api_key, highest))

    # -- requests that the caller encodes, one after another, and whose answers it reads

    @property
    def client_id(self) -> str:
        return self._client_id

    def oldest(self) -> tuple[int, int]:
        """(correlation id, version) of the oldest request without an answer; there is one."""
        correlation_id, _, version = self._waiting[0]
        return correlation_id, version

    def taken(self) -> None:
        """The caller has read the answer to the oldest request itself."""
        self._waiting.popleft()

    def sent(self, api_key: int, version: int) -> None:
        """A request of this API in this version is sent, with ``next_correlation_id``."""
        self._waiting.append((self.next_correlation_id, api_key, version))
        self.next_correlation_id = (self.next_correlation_id + 1) & 0x7FFFFFFF

    def receive(self, data: bytes) -> list[Any]:
        """The responses that ``data`` completes. ProtocolViolation if they do not match the requests."""
        self.check_first((self._reader.head(4) + data[:4])[:4])
        return [self._decode(frame) for frame in self._reader.feed(data)]

    def writable(self) -> memoryview:
        """The buffer for the next bytes from the socket. Views inside responses returned by ``received`` become invalid."""
        return self._reader.writable()

    def received(self, count: int) -> list[Any]:
        """The responses that ``count`` bytes written to the buffer complete; their bulk data stays in the buffer."""
        self._reader.received(count)
        self.check_first(self._reader.head(4))
        responses = []
        while (frame := self._reader.next_frame()) is not None:
            responses.append(self._decode(frame))
        return responses

    def check_first(self, head: bytes) -> None:
        """Until versions are negotiated: ProtocolViolation if the server's first bytes belong to another protocol."""
        if self._served is None:
            check_speaks_kafka(head, self._prefix)

    def _encode(self, request: Message, api_key: int, version: int) -> bytes:
        frame = encode_request(RequestHeader(api_key, version, self.next_correlation_id, self._client_id), request)
        self.sent(api_key, version)  # only now: no answer comes to what cannot be encoded
        return frame

    def accept(self, frame: bytes | memoryview) -> tuple[int, int, memoryview]:
        """(API key, version, body) of the next response, for callers that split the frames themselves."""
        if not self._waiting:
            raise ProtocolViolation("the broker sends an answer that no request asked for")
        correlation_id, api_key, version = self._waiting.popleft()
        if api_key == ApiKey.API_VERSIONS and frame[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
            # This answer is in version 0, whatever version was requested.
            version = 0
        answered, position = decode_response_header(frame, response_header_is_flexible(api_key, version))
        if answered != correlation_id:
            raise ProtocolViolation(f"the broker answers request {answered}, asked was {correlation_id}")
        return api_key, version, memoryview(frame)[position:]

    def _decode(self, frame: bytes | memoryview) -> Any:
        api_key, version, body = self.accept(frame)
        return registry.response_class(api_key).decode(body, version)
