"""Applies records to the registrations of brokers and controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.metadata.image import BrokerImage, ControllerImage, Endpoint
from tidelog.metadata.overlay import Overlay
from tidelog.metadata.records import MetadataLogError
from tidelog.model.ids import Uuid


class RegistrationsDelta:
    """The registered nodes. A change of a broker names the epoch of its registration; MetadataLogError for another epoch."""

    __slots__ = ("brokers", "controllers")

    def __init__(self, brokers: Mapping[int, BrokerImage], controllers: Mapping[int, ControllerImage]) -> None:
        self.brokers: Overlay[int, BrokerImage] = Overlay(brokers)
        self.controllers: Overlay[int, ControllerImage] = Overlay(controllers)

    def register(self, record: Any) -> None:
        """A new registration replaces the earlier one of the broker, at whatever epoch."""
        cordoned = record.cordoned_log_dirs
        self.brokers.put(
            record.broker_id,
            BrokerImage(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=Uuid(record.incarnation_id),
                endpoints=_endpoints(record.end_points),
                features=_features(record.features),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                directories=tuple(Uuid(each) for each in record.log_dirs),
                cordoned_directories=None if cordoned is None else tuple(Uuid(each) for each in cordoned),
                is_migrating_zk_broker=record.is_migrating_zk_broker,
            ),
        )

    def unregister(self, record: Any) -> None:
        self._known(record.broker_id, record.broker_epoch, record.NAME)
        self.brokers.discard(record.broker_id)

    def change(self, record: Any) -> None:
        """Zero, null or an empty list leave a field as it is; a controlled shutdown is not taken back."""
        broker = self._known(record.broker_id, record.broker_epoch, record.NAME)
        cordoned = record.cordoned_log_dirs
        self.brokers.put(
            broker.id,
            broker._replace(
                fenced=broker.fenced if record.fenced == 0 else record.fenced > 0,
                in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown > 0,
                directories=tuple(Uuid(each) for each in record.log_dirs) if record.log_dirs else broker.directories,
                cordoned_directories=broker.cordoned_directories if cordoned is None else tuple(Uuid(each) for each in cordoned),
            ),
        )

    def fence(self, record: Any) -> None:
        broker = self._known(record.id, record.epoch, record.NAME)
        self.brokers.put(broker.id, broker._replace(fenced=True))

    def unfence(self, record: Any) -> None:
        broker = self._known(record.id, record.epoch, record.NAME)
        self.brokers.put(broker.id, broker._replace(fenced=False))

    def register_controller(self, record: Any) -> None:
        self.controllers.put(
            record.controller_id,
            ControllerImage(
                id=record.controller_id,
                incarnation_id=Uuid(record.incarnation_id),
                endpoints=_endpoints(record.end_points),
                features=_features(record.features),
                zk_migration_ready=record.zk_migration_ready,
            ),
        )

    def unregister_controller(self, record: Any) -> None:
        """Kafka 4.4 writes it; it names no epoch, and says nothing about a controller that is not registered."""
        self.controllers.discard(record.controller_id)

    def _known(self, broker_id: int, epoch: int, what: str) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise MetadataLogError(f"{what} for broker {broker_id}, which is not registered")
        if broker.epoch != epoch:
            raise MetadataLogError(f"{what} for broker {broker_id} at epoch {epoch}, which is registered at epoch {broker.epoch}")
        return broker


def _endpoints(listeners: list[Any]) -> dict[str, Endpoint]:
    return {each.name: Endpoint(each.name, each.host, each.port, each.security_protocol) for each in listeners}


def _features(features: list[Any]) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in features}
