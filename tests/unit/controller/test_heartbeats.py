from __future__ import annotations

from tidelog.controller.heartbeats import BrokerHeartbeats
from tidelog.metadata.image import BrokerImage
from tidelog.model.ids import Uuid


def broker(broker_id: int, *, fenced: bool = False) -> BrokerImage:
    return BrokerImage(broker_id, broker_id * 10, Uuid(b"i" * 16), {}, {}, None, fenced, False, ())


def begun(*brokers: BrokerImage, own_id: int = -1) -> BrokerHeartbeats:
    heartbeats = BrokerHeartbeats(brokers, own_id=own_id, timeout_ms=100)
    heartbeats.advance(1_000)
    return heartbeats


def advance(heartbeats: BrokerHeartbeats, *times_ms: int) -> None:
    for each in times_ms:
        heartbeats.advance(1_000 + each)


def test_a_new_controller_gives_each_unfenced_broker_one_whole_session() -> None:
    heartbeats = begun(broker(1), broker(2, fenced=True))
    assert (heartbeats.has_session(1, 10), heartbeats.has_session(2, 20)) == (True, False)
    advance(heartbeats, 50, 100)
    assert heartbeats.take_expired() is None
    advance(heartbeats, 101)
    assert not heartbeats.has_session(1, 10)
    assert heartbeats.take_expired() == (1, 10)
    assert heartbeats.take_expired() is None


def test_the_controllers_own_broker_has_no_session_before_it_is_heard_of() -> None:
    heartbeats = begun(broker(1), own_id=1)
    assert not heartbeats.has_session(1, 10)
    heartbeats.heard(1, 11, 5)
    assert heartbeats.has_session(1, 11)


def test_the_longest_silent_broker_expires_first_and_a_heartbeat_renews() -> None:
    heartbeats = begun(broker(1), broker(2), broker(3))
    advance(heartbeats, 50)
    heartbeats.heard(1, 10, 7)
    advance(heartbeats, 100, 120)
    assert [heartbeats.take_expired() for _ in range(3)] == [(2, 20), (3, 30), None]
    advance(heartbeats, 151)
    assert heartbeats.take_expired() == (1, 10)


def test_a_stall_of_the_controller_is_not_taken_for_the_silence_of_brokers() -> None:
    heartbeats = begun(broker(1))
    advance(heartbeats, 60_000)
    assert heartbeats.has_session(1, 10)
    heartbeats.heard(1, 10, 7)
    advance(heartbeats, 60_050, 60_100)
    assert heartbeats.take_expired() is None


def test_a_session_is_of_one_registration() -> None:
    heartbeats = begun(broker(1))
    assert not heartbeats.has_session(1, 11)
    heartbeats.end(1)
    assert not heartbeats.has_session(1, 10)


def test_a_broker_may_stop_when_all_active_ones_have_passed_the_offset() -> None:
    heartbeats = begun(broker(1), broker(2), broker(3))
    assert not heartbeats.shutting_down(1)
    heartbeats.shut_down_at(1, 40)
    heartbeats.shut_down_at(1, 90)
    assert heartbeats.shutting_down(1)
    heartbeats.heard(2, 20, 40)
    assert not heartbeats.may_stop(1, [2, 3]), "nothing is known of 3 yet"
    heartbeats.heard(3, 30, 39)
    assert not heartbeats.may_stop(1, [2, 3])
    assert heartbeats.may_stop(1, [2])
    assert heartbeats.may_stop(1, [])
    heartbeats.heard(3, 30, 40)
    assert heartbeats.may_stop(1, [2, 3])
    heartbeats.fenced(1)
    assert not heartbeats.shutting_down(1)


def test_a_process_that_is_known_to_be_dead_is_taken_first_whenever_it_was_heard() -> None:
    heartbeats = BrokerHeartbeats([], own_id=9, timeout_ms=9000)
    heartbeats.advance(0)
    for broker_id in (1, 2):
        heartbeats.heard(broker_id, 7, 100)
    heartbeats.gone(2, 6)
    assert heartbeats.has_session(2, 7), "it was an earlier life"
    heartbeats.gone(2, 7)
    assert not heartbeats.has_session(2, 7)
    assert (heartbeats.take_expired(), heartbeats.take_expired()) == ((2, 7), None)
    assert heartbeats.has_session(1, 7)


def test_why_a_session_expired_is_known_until_the_next_heartbeat() -> None:
    sessions = BrokerHeartbeats([], own_id=0, timeout_ms=1000)
    sessions.advance(0)
    sessions.heard(1, 10, 5)
    for steady_ms in (500, 1000, 1500):
        sessions.advance(steady_ms)
    assert sessions.why_ended(1) is None
    assert sessions.take_expired() == (1, 10)
    assert sessions.why_ended(1) == "no heartbeat for 1.5 s"
    sessions.heard(1, 10, 5)
    assert sessions.why_ended(1) is None
    sessions.gone(1, 10)
    assert sessions.take_expired() == (1, 10)
    assert sessions.why_ended(1) == "its process is gone"
