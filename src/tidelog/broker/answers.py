"""What a handler may answer: a closed union.

A response message is the common answer. The others exist for speed (``Encoded``, ``Frame``), for requests without an answer
(``Signal``), and for requests that wait without a coroutine (``Waiting``).

Deliberately elsewhere: how an answer becomes a frame (``dispatch``), how it leaves (``server.serving.sending``).
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
from tidelog.replication.delayed import Parked

log = logging.getLogger(__name__)

Part: TypeAlias = bytes | bytearray | memoryview | FileSlice
Frame: TypeAlias = list[Part]
"""A whole response frame in parts, length prefix and header included: what ``protocol.fastpath`` writes."""


class Signal(Enum):
    """What a handler may return instead of an answer."""

    NO_RESPONSE = "no response"
    """The request has no answer (Produce with acks=0); the next request is read."""
    CLOSE_CONNECTION = "close the connection"
    """Nothing is answered, the connection ends: Kafka's way to refuse what cannot be answered."""


NO_RESPONSE = Signal.NO_RESPONSE
CLOSE_CONNECTION = Signal.CLOSE_CONNECTION


class Encoded:
    """A response body, encoded already: buffers and slices of files sent one after another; ``size`` bytes together."""

    __slots__ = ("parts", "size")

    def __init__(self, parts: Sequence[Part], size: int) -> None:
        self.parts = parts
        self.size = size


class Waiting:
    """An answer that is there when ``parked`` is done, for a request whose bytes are not needed any more.

    Cheaper than a coroutine: only ``go_on`` is called, once. A caller that gives up finishes ``parked`` instead.
    """

    __slots__ = ("parked",)

    lets_next_in = False
    """Whether the connection's next Produce may be handled meanwhile."""

    def __init__(self, parked: Parked) -> None:
        self.parked = parked

    @abstractmethod
    def go_on(self) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """``parked`` is done: the frame, another ``Waiting``, or a coroutine whose result is either."""

    @abstractmethod
    def refuse(self, error: KafkaError) -> Outgoing:
        """``go_on`` failed: the frame that says so."""


Outgoing: TypeAlias = Frame | Signal | Waiting
"""An answer on its way to a connection: a frame, what to do instead of answering, or what to wait for."""
Answer: TypeAlias = Message | Encoded | Frame | Signal | Waiting
Later: TypeAlias = Coroutine[Any, Any, Answer]
"""An answer that has to be waited for."""


def as_kafka_error(error: Exception) -> KafkaError:
    """What a client is answered when a handler raised ``error``. What is unforeseen is logged; a ProtocolViolation is raised
    again, for it ends the connection."""
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, ProtocolViolation):
        raise error
    if isinstance(error, StorageFailure):
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    log.error("a request failed unexpectedly; it is answered with UNKNOWN_SERVER_ERROR", exc_info=error)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def resume(waiting: Waiting) -> Outgoing | Coroutine[Any, Any, Outgoing]:
    """What ``waiting`` waited for is there. An error becomes its answer."""
    try:
        outgoing = waiting.go_on()
    except Exception as error:
        return waiting.refuse(as_kafka_error(error))
    if isinstance(outgoing, list):  # first: nearly all are, and asking for a Coroutine costs more
        return outgoing
    return _resumed(waiting, outgoing) if isinstance(outgoing, Coroutine) else outgoing


async def _resumed(waiting: Waiting, later: Coroutine[Any, Any, Outgoing]) -> Outgoing:
    try:
        return await later
    except Exception as error:
        return waiting.refuse(as_kafka_error(error))


async def settled(wait: Callable[[Parked], Any], answer: Answer | Later) -> Message | Encoded | Frame | Signal:
    """The answer of a handler once it waits for nothing any more, for callers that are no connection. ``wait`` parks."""
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
