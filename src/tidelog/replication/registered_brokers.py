"""The other brokers as the metadata log has them: which are alive, which may join an ISR (KIP-841), and which were restarted."""

from __future__ import annotations

from tidelog.metadata.image import ClusterImage


class RegisteredBrokers:
    """The brokers of the newest image that this broker applied."""

    __slots__ = ("_brokers",)

    def __init__(self) -> None:
        self._brokers = ClusterImage().brokers

    def follow(self, image: ClusterImage) -> None:
        """Use the brokers of ``image`` from now on."""
        self._brokers = image.brokers

    def may_join_isr(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the broker is unfenced, not shutting down, and registered with this epoch (-1: unknown)."""
        broker = self._brokers.get(broker_id)
        return broker is not None and broker.active and broker_epoch in (-1, broker.epoch)

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered and not fenced."""
        broker = self._brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def is_replaced(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the broker has registered again with a higher epoch."""
        broker = self._brokers.get(broker_id)
        return broker is not None and 0 <= broker_epoch < broker.epoch

    def rack_of(self, broker_id: int) -> str | None:
        """The rack with which the broker registered."""
        broker = self._brokers.get(broker_id)
        return broker.rack if broker is not None else None
