"""Broker lifecycle: heartbeats, fencing, controlled shutdown, removal. Registration is in ``broker_registration``."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from tidelog.controller.leader_moves import leaving, when_back, when_gone, when_unregistered
from tidelog.controller.replica_directories import directory_changes, newly_failed
from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import BrokerImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tidelog.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tidelog.protocol.messages.unregister_broker_record import UnregisterBrokerRecord

FENCE = 1
UNFENCE = -1
"""Values of BrokerRegistrationChangeRecord.fenced; 0 leaves the state unchanged."""
IN_CONTROLLED_SHUTDOWN = 1
GIVEN_AWAY_AT_ONCE = 200
"""Partitions that a stopping broker gives up with one heartbeat. A broker applies such a change as a whole, and until the new
leader has applied it the partitions have no leader; a change of thousands would be a long gap for each of them."""


class _Next(NamedTuple):
    """The state that a heartbeat moves a broker to."""

    records: list[MetadataRecord]
    fenced: bool
    shutting_down: bool = False
    may_stop: bool = False


def broker_heartbeat(decision: Decision, request: BrokerHeartbeatRequest, registered_at: int) -> ControllerResult:
    """Decides a broker's next state: unfence it, keep it, fence it, or continue its controlled shutdown.

    A broker is unfenced only when it has applied its own registration, which is at offset ``registered_at``. A broker that shuts
    down first gives up its leaderships; it may stop when it has none left and every active broker has applied the change.
    KafkaError STALE_BROKER_EPOCH for a previous process of the broker.
    """
    broker = decision.known_broker(request.broker_id, request.broker_epoch)
    heartbeats = decision.heartbeats
    offset = request.current_metadata_offset
    caught_up = offset >= registered_at
    heartbeats.heard(broker.id, broker.epoch, offset)
    after = _after_heartbeat(decision, broker, request, caught_up=caught_up)
    if after.fenced:
        heartbeats.fenced(broker.id)
    elif after.shutting_down and broker.in_controlled_shutdown and after.records:
        heartbeats.gives_away(broker.id)
    elif after.shutting_down and broker.in_controlled_shutdown:
        # The shutdown began under another controller; the batch written now may add two control records. Otherwise the record
        # states it.
        heartbeats.shut_down_at(broker.id, decision.next_offset + len(after.records) + 1)
    if after.may_stop:
        # The broker announced its stop, so its next process need not wait for the session timeout.
        heartbeats.end(broker.id, "it stops in order")
    records = after.records + directory_changes(decision, broker, request.offline_log_dirs, request.cordoned_log_dirs)
    response = BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=after.fenced, should_shut_down=after.may_stop)
    return ControllerResult.of(response, records)


def _after_heartbeat(decision: Decision, broker: BrokerImage, request: BrokerHeartbeatRequest, *, caught_up: bool) -> _Next:
    if broker.fenced:
        if request.want_shut_down:
            return _Next([], fenced=True, may_stop=True)
        if request.want_fence or not caught_up or newly_failed(decision, broker, request.offline_log_dirs):
            # Replicas in a log dir that has just failed must not become leaders; the heartbeat that carries this decision already
            # reports it.
            return _Next([], fenced=True)
        return _Next(_unfence(decision, broker), fenced=False)
    if decision.heartbeats.shutting_down(broker.id):
        return _while_shutting_down(decision, broker)
    if request.want_fence:
        return _Next(fence(decision, broker), fenced=True, may_stop=request.want_shut_down)
    if not request.want_shut_down:
        return _Next([], fenced=False)
    if decision.partitions.leads(broker.id) or len(decision.partitions.with_in_isr(broker.id)) > GIVEN_AWAY_AT_ONCE:
        return _Next(_begin_shutdown(decision, broker), fenced=False, shutting_down=True)
    return _Next(fence(decision, broker), fenced=True, may_stop=True)


def _while_shutting_down(decision: Decision, broker: BrokerImage) -> _Next:
    records = _given_away(decision, broker)
    if records:
        return _Next(records, fenced=False, shutting_down=True)
    active = (each.id for each in decision.image.brokers.values() if each.active)
    if decision.partitions.leads(broker.id) or not decision.heartbeats.may_stop(broker.id, active):
        return _Next([], fenced=False, shutting_down=True)
    return _Next(fence(decision, broker), fenced=True, may_stop=True)


def fence(decision: Decision, broker: BrokerImage) -> list[MetadataRecord]:
    """Fences the broker: moves its leaderships, then fences it."""
    records = when_gone(decision, broker.id)
    records.append(BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE))
    return records


def _unfence(decision: Decision, broker: BrokerImage) -> list[MetadataRecord]:
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    return [change, *when_back(decision, broker.id)]


def _begin_shutdown(decision: Decision, broker: BrokerImage) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
            )
        )
    return records + _given_away(decision, broker)


def _given_away(decision: Decision, broker: BrokerImage) -> list[MetadataRecord]:
    """Removes the broker from the next partitions that it leads or is in the ISR of."""
    return list(islice(leaving(decision, broker.id), GIVEN_AWAY_AT_ONCE))


def fence_silent_broker(decision: Decision) -> ControllerResult:
    """Fences one broker whose session has expired, if there is one. The response says whether there may be more: one broker at
    a time, so that no leadership moves to another broker that is also dead."""
    session = decision.heartbeats.take_expired()
    if session is None:
        return ControllerResult(False)
    broker_id, epoch = session
    broker = decision.image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch or broker.fenced:
        return ControllerResult(True)
    return ControllerResult.of(True, fence(decision, broker))


def unregister_broker(decision: Decision, request: UnregisterBrokerRequest) -> ControllerResult:
    """UnregisterBroker: removes a broker for good. BROKER_ID_NOT_REGISTERED when it is not registered."""
    broker = decision.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker {request.broker_id} is registered")
    records = when_unregistered(decision, broker.id)
    records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    return ControllerResult.of(UnregisterBrokerResponse(), records)
