"""What a handler may return: a closed union.

The usual answer is a response message. The others exist for speed (``Encoded``, ``Frame``), for requests without an answer
(``Signal``), and for requests that wait without a coroutine (``Waiting``).

Elsewhere: how an answer becomes a frame (``dispatch``), how it is sent (``server.serving.sending``).
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, TypeAlias

from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation, StorageFailure
from tidelog.model.ports import FileSlice
from tidelog.protocol.structure import Message
from tidelog.replication.purgatory import Parked

log = logging.getLogger(__name__)

Part: TypeAlias = bytes | bytearray | memoryview | FileSlice
Frame: TypeAlias = list[Part]
"""A complete response frame in parts, including length prefix and header; ``protocol.fastpath`` writes it."""


class Signal(Enum):
    """Returned by a handler instead of an answer."""

    NO_RESPONSE = "no response"
    """The request has no answer (Produce with acks=0); the next request is read."""
    CLOSE_CONNECTION = "close the connection"
    """Send nothing and close the connection, as Kafka does when a request cannot be answered."""


NO_RESPONSE = Signal.NO_RESPONSE
CLOSE_CONNECTION = Signal.CLOSE_CONNECTION


class Farewell:
    """The last answer of a connection: it is sent after ``delay_ms``, and then the connection closes. Nothing is read meanwhile.

    An authentication that failed ends this way. A client that is cut off without an answer takes it for a network fault and
    tries again at once (KIP-306).
    """

    __slots__ = ("delay_ms", "parts")

    def __init__(self, parts: Frame, delay_ms: int) -> None:
        self.parts = parts
        self.delay_ms = delay_ms


class Encoded:
    """An encoded response body: buffers and file slices to send in order, ``size`` bytes in total."""

    __slots__ = ("parts", "size")

    def __init__(self, parts: Sequence[Part], size: int) -> None:
        self.parts = parts
        self.size = size


class Waiting:
    """An answer that is ready when ``parked`` is done. The request's bytes are no longer needed.

    Cheaper than a coroutine: only ``go_on`` is called, once. To give up, finish ``parked`` instead.
    """

    __slots__ = ("parked",)

    lets_next_in = False
    """Whether the connection may handle its next Produce meanwhile."""

    def __init__(self, parked: Parked) -> None:
        self.parked = parked

    @abstractmethod
    def go_on(self) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """Called when ``parked`` is done: the frame, another ``Waiting``, or a coroutine that returns either."""

    @abstractmethod
    def refuse(self, error: KafkaError) -> Outgoing:
        """The error frame, after ``go_on`` raised ``error``."""


Outgoing: TypeAlias = Frame | Signal | Waiting
"""An answer on its way to a connection: a frame, a signal, or a wait."""
Answer: TypeAlias = Message | Encoded | Frame | Signal | Waiting
Later: TypeAlias = Coroutine[Any, Any, Answer]
"""An answer that is not ready yet."""


def as_kafka_error(error: Exception) -> KafkaError:
    """The error with which a client is answered when a handler raised ``error``. Unexpected errors are logged. A
    ProtocolViolation is raised again, because it closes the connection."""
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, ProtocolViolation):
        raise error
    if isinstance(error, StorageFailure):
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    log.error("a request failed unexpectedly; it is answered with UNKNOWN_SERVER_ERROR", exc_info=error)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def resume(waiting: Waiting) -> Outgoing | Coroutine[Any, Any, Outgoing]:
    """Resume a request whose ``parked`` is done. An exception becomes an error response."""
    try:
        outgoing = waiting.go_on()
    except Exception as error:
        return waiting.refuse(as_kafka_error(error))
    if isinstance(outgoing, list):  # checked first: nearly all are lists, and isinstance(..., Coroutine) is slower
        return outgoing
    return _resumed(waiting, outgoing) if isinstance(outgoing, Coroutine) else outgoing


async def _resumed(waiting: Waiting, later: Coroutine[Any, Any, Outgoing]) -> Outgoing:
    try:
        return await later
    except Exception as error:
        return waiting.refuse(as_kafka_error(error))


async def settled(wait: Callable[[Parked], Any], answer: Answer | Later) -> Message | Encoded | Frame | Signal:
    """Wait until a handler's answer is final, for callers other than connections. ``wait`` parks."""
    while True:
        if isinstance(answer, Waiting):
            try:
                await wait(answer.parked)
            finally:
                answer.parked.finish()
            answer = resume(answer)
        elif isinstance(answer, Coroutine):
            answer = await answer
        else:
            return answer
