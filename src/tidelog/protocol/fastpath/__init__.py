"""Handwritten codecs for Produce and Fetch: the same bytes as ``messages/produce.py`` and ``messages/fetch.py``, but faster.

Requests become light views (tuples, record batches as memoryviews into the frame). Responses become whole frames; in a Fetch
response records stay ``FileSlice``s between the other bytes. A property test compares each function with its generated
counterpart.
"""

from tidelog.protocol.fastpath.fetch import (
    FetchPartition,
    FetchResult,
    FetchTopic,
    FetchTopicResult,
    FetchView,
    ForgottenTopic,
    Part,
    encode_fetch_response,
    read_fetch,
)
from tidelog.protocol.fastpath.produce import (
    ProducePartition,
    ProduceResult,
    ProduceTopic,
    ProduceTopicResult,
    ProduceView,
    encode_produce_response,
    read_produce,
)
from tidelog.protocol.fastpath.topics import NodeEndpoint

__all__ = [
    "FetchPartition",
    "FetchResult",
    "FetchTopic",
    "FetchTopicResult",
    "FetchView",
    "ForgottenTopic",
    "NodeEndpoint",
    "Part",
    "ProducePartition",
    "ProduceResult",
    "ProduceTopic",
    "ProduceTopicResult",
    "ProduceView",
    "encode_fetch_response",
    "encode_produce_response",
    "read_fetch",
    "read_produce",
]
