"""Times of requests, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld, served
from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Outgoing, Waiting, resume
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.request import Session
from tidelog.broker.request_times import ALL_OF, ONE_IN, PHASES, RequestTimes, Sampling, SlowRequest, name_of
from tidelog.metrics.latency import WINDOW_NS
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.fastpath import FetchView
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tidelog.protocol.messages.fetch import FetchRequest
from tidelog.replication.purgatory import ParkedAppend, ParkedFetch

FRAME = memoryview(encode_request(RequestHeader(60, 1, 5, "me"), DescribeClusterRequest())[4:])


class Talk:
    """A dispatcher with one API, and a connection that the test plays."""

    def __init__(self, handler: Callable[[Talk], Any]) -> None:
        self.now_ns = 1000
        self.slow: list[SlowRequest] = []
        self.times = RequestTimes(lambda: self.now_ns, self.slow.append)
        route = served(ApiKey.DESCRIBE_CLUSTER, (0, 1), lambda ctx, request: handler(self))
        world = NodeWorld(apis={route.api.key: route})
        self.session: Session = world.session()
        self.dispatcher = Dispatcher(world.broker, world.broker.apis, self.times)

    def pass_ns(self, count: int) -> None:
        self.now_ns += count

    def ask(self, queued_ns: int = 5) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        self.session.received_ns = self.now_ns
        self.pass_ns(queued_ns)
        return self.dispatcher.handle(self.session, FRAME)

    def leave(self, deferred_ns: int = 3, sending_ns: int = 2) -> None:
        self.pass_ns(deferred_ns)
        self.times.sending(self.session.timed)
        self.pass_ns(sending_ns)
        self.times.sent(self.session.timed)

    def phases(self) -> dict[str, int]:
        """The sums, of the one API."""
        ((name, found),) = self.times.by_name.items()
        assert name == "DescribeCluster"
        return {phase: each.sum_ns for phase, each in zip(PHASES, found, strict=True) if each.sum_ns}

    def count(self) -> int:
        return self.times.by_name["DescribeCluster"][0].count


def answered(talk: Talk) -> DescribeClusterResponse:
    talk.pass_ns(20)
    return DescribeClusterResponse()


def test_a_request_that_is_answered_at_once_has_no_remote_time() -> None:
    talk = Talk(answered)
    talk.ask()
    talk.leave()
    assert talk.phases() == {"total": 30, "request queue": 5, "local": 20, "response queue": 3, "response send": 2}
    assert talk.session.timed == []


def test_a_parked_request_spends_its_wait_as_remote_time() -> None:
    class Parks(Waiting):
        lets_next_in = True

        def __init__(self) -> None:
            super().__init__(ParkedAppend(0, -1))

        def go_on(self) -> Outgoing:
            talk.pass_ns(7)
            return again.pop() if again else [b"answer"]

        def refuse(self, error: KafkaError) -> Outgoing:
            return [b"refused"]

    def parked(talk: Talk) -> Waiting:
        talk.pass_ns(20)
        return Parks()

    talk = Talk(parked)
    again: list[Waiting] = [Parks()]
    waiting = talk.ask()
    assert isinstance(waiting, Waiting) and waiting.lets_next_in
    talk.pass_ns(100)
    waiting = resume(waiting)
    assert isinstance(waiting, Waiting), "it parks twice"
    talk.pass_ns(100)
    assert resume(waiting) == [b"answer"]
    talk.leave()
    assert talk.phases() == {
        "total": 244,
        "request queue": 5,
        "local": 20,
        "remote": 214,
        "response queue": 3,
        "response send": 2,
    }


def test_a_parked_request_that_fails_is_timed_too() -> None:
    class Fails(Waiting):
        def go_on(self) -> Outgoing:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

        def refuse(self, error: KafkaError) -> Outgoing:
            return [error.code.name.encode()]

    talk = Talk(lambda _: Fails(ParkedAppend(0, -1)))
    waiting = talk.ask()
    assert isinstance(waiting, Waiting)
    talk.pass_ns(40)
    assert resume(waiting) == [b"REQUEST_TIMED_OUT"]
    talk.leave()
    assert talk.phases()["remote"] == 40


class Pause:
    def __await__(self) -> Generator[str, None, None]:
        yield "a future"


@pytest.mark.parametrize("pauses", [0, 1, 2])
def test_a_coroutine_is_local_until_its_first_wait(pauses: int) -> None:
    async def later(talk: Talk) -> DescribeClusterResponse:
        for _ in range(pauses):
            talk.pass_ns(20)
            await Pause()
        talk.pass_ns(20)
        return DescribeClusterResponse()

    talk = Talk(later)
    coroutine = talk.ask()
    assert isinstance(coroutine, Coroutine)
    for _ in range(pauses):
        assert coroutine.send(None) == "a future"
        talk.pass_ns(100)
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    assert type(stop.value.value) is list
    talk.leave()
    remote = {"remote": 100 * pauses + 20 * pauses} if pauses else {}
    assert talk.phases() == {
        "total": 30 + sum(remote.values()),
        "request queue": 5,
        "local": 20,
        **remote,
        "response queue": 3,
        "response send": 2,
    }


def test_an_abandoned_coroutine_runs_its_end_and_is_not_counted() -> None:
    ended: list[bool] = []

    async def later(talk: Talk) -> DescribeClusterResponse:
        try:
            await Pause()
        finally:
            ended.append(True)
        return DescribeClusterResponse()

    talk = Talk(later)
    coroutine = talk.ask()
    assert isinstance(coroutine, Coroutine)
    coroutine.send(None)
    coroutine.close()
    assert ended == [True] and not talk.times.by_name


def test_a_request_without_an_answer_is_over_when_it_was_handled() -> None:
    talk = Talk(lambda _: NO_RESPONSE)
    talk.ask()
    assert (talk.phases(), talk.session.timed) == ({"total": 5, "request queue": 5}, [])
    talk = Talk(lambda _: CLOSE_CONNECTION)
    talk.ask()
    assert not talk.times.by_name and not talk.session.timed


def test_an_answer_that_is_ready_while_another_is_sent_waits_for_its_own_turn() -> None:
    talk = Talk(answered)
    talk.ask()
    talk.times.sending(talk.session.timed)
    talk.ask()
    talk.times.sent(talk.session.timed)
    assert (talk.count(), len(talk.session.timed)) == (1, 1)
    talk.leave()
    assert (talk.count(), len(talk.session.timed)) == (2, 0)


def test_what_was_kept_back_is_not_in_the_queue() -> None:
    talk = Talk(answered)
    talk.session.received_ns = 0
    talk.dispatcher.handle(talk.session, FRAME)
    talk.leave()
    assert "request queue" not in talk.phases() and talk.phases()["total"] == 25


def test_the_throttle_time_is_that_of_the_session() -> None:
    talk = Talk(answered)
    talk.ask()
    talk.session.throttle_ms = 4
    talk.leave()
    assert talk.phases()["throttle"] == 4_000_000


def test_all_requests_are_counted_and_a_share_of_many_is_timed() -> None:
    talk = Talk(answered)
    timed = 0
    for _ in range(1000):
        talk.ask()
        timed += len(talk.session.timed)
        talk.leave()
    assert ALL_OF <= timed <= ALL_OF + 1000 // ONE_IN
    assert 1000 - ONE_IN < talk.count() <= 1000, "those that are timed count for the others"
    assert talk.dispatcher.requests == {(ApiKey.DESCRIBE_CLUSTER, 1): 1000}
    talk.pass_ns(WINDOW_NS)
    again = 0
    for _ in range(2 * ONE_IN):
        talk.ask()
        again += len(talk.session.timed)
        talk.leave()
    assert again >= ALL_OF, "a new minute"


def test_a_sampling_counts_each_request_once() -> None:
    sampling, asked = Sampling(), 0
    for minute in (1, 1, 2):
        for _ in range(50):
            asked += sampling.weight
            weight = sampling.weight
            assert sampling.take(minute) == weight
            assert sampling.weight in (1, ONE_IN)
    single = 2 * ALL_OF - 1
    assert asked == single + (150 - single) * ONE_IN


def test_fetches_have_the_names_of_consumers_and_of_followers() -> None:
    consumer, follower = FetchView(), FetchView()
    follower.replica_id = 3
    assert [name_of(ApiKey.FETCH, each) for each in (consumer, follower)] == ["FetchConsumer", "FetchFollower"]
    assert name_of(ApiKey.FETCH, FetchRequest()) == "FetchFollower", "of the metadata log"
    assert name_of(ApiKey.PRODUCE, object()) == "Produce"


def test_without_times_nothing_is_timed() -> None:
    talk = Talk(answered)
    dispatcher = Dispatcher(talk.dispatcher._node, talk.dispatcher._apis)
    dispatcher.handle(talk.session, FRAME)
    assert talk.session.timed == []


class Parks(Waiting):
    """Waits until the test resumes it; then the handler works for ``works_ns``."""

    def __init__(self, talk: Talk, parked: Any, works_ns: int = 10) -> None:
        super().__init__(parked)
        self._talk = talk
        self._works_ns = works_ns

    def go_on(self) -> Outgoing:
        self._talk.pass_ns(self._works_ns)
        return [b"answer"]


def slow_after(talk: Talk, waited_ns: int) -> list[SlowRequest]:
    """What is reported of one request with this wait, where 100 ns are slow."""
    talk.times.slow_ns = 100
    waiting = talk.ask()
    talk.pass_ns(waited_ns)
    assert isinstance(waiting, Waiting)
    resume(waiting)
    talk.leave()
    return talk.slow


def test_a_slow_request_is_reported_with_its_client_and_phases() -> None:
    (slow,) = slow_after(Talk(lambda talk: Parks(talk, ParkedAppend(0, -1))), 500)
    assert (slow.name, slow.version, slow.client_id, slow.on_purpose_ns) == ("DescribeCluster", 1, "me", 0)
    assert dict(zip(PHASES, slow.times_ns, strict=True)) == {
        "total": 520, "request queue": 5, "local": 0, "remote": 510, "throttle": 0, "response queue": 3, "response send": 2,
    }  # fmt: skip


def test_a_quick_one_is_not_reported_and_none_is_while_that_is_off() -> None:
    assert not slow_after(Talk(lambda talk: Parks(talk, ParkedAppend(0, -1))), 50)
    talk = Talk(lambda talk: Parks(talk, ParkedAppend(0, -1)))
    waiting = talk.ask()
    talk.pass_ns(10**12)
    assert isinstance(waiting, Waiting)
    resume(waiting)
    talk.leave()
    assert not talk.slow


def test_a_long_poll_is_slow_by_what_it_takes_besides_its_wait() -> None:
    assert not slow_after(Talk(lambda talk: Parks(talk, ParkedFetch(0, 1, committed=False))), 100_000)
    (slow,) = slow_after(Talk(lambda talk: Parks(talk, ParkedFetch(0, 1, committed=False), works_ns=200)), 100_000)
    assert (slow.times_ns[0], slow.on_purpose_ns) == (100_210, 100_000)


def test_while_slow_ones_are_reported_each_request_is_timed_and_counts_once() -> None:
    talk = Talk(answered)
    talk.times.slow_ns = 10**9
    for _ in range(3 * ONE_IN):
        talk.ask()
        talk.leave()
    assert talk.count() == 3 * ONE_IN
    talk.times.slow_ns = 0
    for _ in range(3 * ONE_IN):
        talk.ask()
        talk.leave()
    assert 5 * ONE_IN <= talk.count() <= 7 * ONE_IN
