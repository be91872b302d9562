from collections.abc import Callable

import pytest

from tidelog.metadata.image import BrokerImage
from tidelog.metadata.records import MetadataLogError
from tidelog.metadata.registrations_delta import RegistrationsDelta
from tidelog.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from tidelog.protocol.messages.fence_broker_record import FenceBrokerRecord
from tidelog.protocol.messages.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from tidelog.protocol.messages.register_controller_record import RegisterControllerRecord
from tidelog.protocol.messages.unfence_broker_record import UnfenceBrokerRecord
from tidelog.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from tidelog.protocol.messages.unregister_controller_record import UnregisterControllerRecord

DIR, OTHER = b"D" * 16, b"O" * 16


def registration(epoch: int = 7) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=1, incarnation_id=b"I" * 16, broker_epoch=epoch, fenced=True, log_dirs=[DIR], rack="a",
        end_points=[BrokerEndpoint(name="P", host="h", port=1, security_protocol=0)],
        features=[BrokerFeature(name="f", min_supported_version=0, max_supported_version=2)],
    )  # fmt: skip


def registered() -> RegistrationsDelta:
    delta = RegistrationsDelta({}, {})
    delta.register(registration())
    return delta


def the_broker(delta: RegistrationsDelta) -> BrokerImage:
    return delta.brokers.now[1]


def test_a_broker_is_registered_changed_fenced_and_unregistered() -> None:
    delta = registered()
    assert the_broker(delta).endpoints["P"].host == "h"
    assert the_broker(delta).features == {"f": (0, 2)}
    assert not the_broker(delta).active
    delta.change(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1))
    assert the_broker(delta).active
    delta.change(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1))
    assert (the_broker(delta).fenced, the_broker(delta).in_controlled_shutdown) == (False, True)
    delta.change(
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=1, log_dirs=[OTHER], cordoned_log_dirs=[OTHER])
    )
    assert (the_broker(delta).fenced, the_broker(delta).directories) == (True, (OTHER,))
    assert the_broker(delta).cordoned_directories == (OTHER,)
    delta.unfence(UnfenceBrokerRecord(id=1, epoch=7))
    assert not the_broker(delta).fenced
    delta.fence(FenceBrokerRecord(id=1, epoch=7))
    assert the_broker(delta).fenced
    delta.unregister(UnregisterBrokerRecord(broker_id=1, broker_epoch=7))
    assert delta.brokers.now == {}


def test_a_change_leaves_the_fields_that_it_does_not_name() -> None:
    delta = registered()
    before = the_broker(delta)
    delta.change(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7))
    assert the_broker(delta) == before


def test_a_broker_that_registers_again_has_its_new_epoch() -> None:
    delta = registered()
    delta.register(registration(epoch=9))
    assert the_broker(delta).epoch == 9


@pytest.mark.parametrize(
    "apply",
    [
        lambda delta: delta.change(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=6, fenced=-1)),
        lambda delta: delta.fence(FenceBrokerRecord(id=1, epoch=6)),
        lambda delta: delta.unfence(UnfenceBrokerRecord(id=1, epoch=6)),
        lambda delta: delta.unregister(UnregisterBrokerRecord(broker_id=1, broker_epoch=6)),
    ],
)
def test_a_record_for_another_epoch_or_an_unknown_broker_is_refused(apply: Callable[[RegistrationsDelta], None]) -> None:
    with pytest.raises(MetadataLogError, match="at epoch 6, which is registered at epoch 7"):
        apply(registered())
    with pytest.raises(MetadataLogError, match="broker 1, which is not registered"):
        apply(RegistrationsDelta({}, {}))


def test_a_controller_is_registered_beside_the_brokers() -> None:
    delta = registered()
    delta.register_controller(RegisterControllerRecord(controller_id=1, incarnation_id=OTHER))
    assert delta.controllers.now[1].incarnation_id == OTHER
    assert list(delta.brokers.touched) == [1] and list(delta.controllers.touched) == [1]


def test_a_controller_that_is_unregistered_is_gone_and_an_unknown_one_stays_so() -> None:
    delta = registered()
    delta.register_controller(RegisterControllerRecord(controller_id=9, incarnation_id=OTHER))
    for controller_id in (9, 8):
        delta.unregister_controller(UnregisterControllerRecord(controller_id=controller_id))
    assert delta.controllers.now == {} and list(delta.brokers.now) == [1]
