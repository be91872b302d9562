"""Requests from this broker to others by broker id; the image has their current addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.metadata.image import ClusterImage
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.server.cluster.channels import ChannelError, Channels, Failure

_CODES = {
    Failure.DISCONNECTED: ErrorCode.NETWORK_EXCEPTION,
    Failure.REFUSED: ErrorCode.NETWORK_EXCEPTION,
    Failure.TIMEOUT: ErrorCode.REQUEST_TIMED_OUT,
    Failure.UNSUPPORTED: ErrorCode.UNSUPPORTED_VERSION,
}


class ChannelsToBrokers:
    """``broker.ports.OtherBrokers`` over TCP. ``image()`` returns this node's view of the cluster; ``listener`` is the
    inter-broker listener."""

    def __init__(self, channels: Channels, image: Callable[[], ClusterImage], listener: str) -> None:
        self._channels = channels
        self._image = image
        self._listener = listener

    async def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Any:
        broker = self._image().brokers.get(broker_id)
        endpoint = broker.endpoints.get(self._listener) if broker is not None else None
        if endpoint is None:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"Broker {broker_id} is not registered, or has no listener {self._listener} (inter.broker.listener.name).",
            )
        try:
            return await self._channels.to(endpoint.host, endpoint.port, purpose).ask(request, timeout_ms=timeout_ms)
        except ChannelError as error:
            raise KafkaError(_CODES[error.kind], f"Broker {broker_id} at {error}") from error
