from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.replication.followed import led
from tests.unit.replication.world import NOW_MS, Pending, World, batch, led_by_us, topic_id
from tidelog.broker.apis.records.fetch import fetch
from tidelog.broker.request import Context
from tidelog.metadata.image import PartitionImage
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.model.ports import FileSlice
from tidelog.protocol.fastpath import FetchView
from tidelog.protocol.framing import decode_response_header
from tidelog.protocol.messages.fetch import FetchResponse
from tidelog.records.batch import iter_headers
from tidelog.records.record import iter_records
from tidelog.storage.log_config import LogConfig

ELSEWHERE = PartitionImage((2,), (2,), 2, leader_epoch=4, directories=(b"C" * 16,))


def view(*asked: tuple[str, int, int], version: int = 18, **options: Any) -> FetchView:
    """A request for (topic, partition, offset)."""
    request = FetchView()
    request.max_wait_ms, request.min_bytes, request.max_bytes = 500, 1, 1 << 20
    request.session_epoch = -1
    for name, value in options.items():
        setattr(request, name, value)
    for topic, index, offset in asked:
        named: tuple[str | None, Uuid] = (None, topic_id(topic)) if version >= 13 else (topic, ZERO_UUID)
        if not request.topics or request.topics[-1][:2] != named:
            request.topics.append((*named, []))
        request.topics[-1][2].append((index, -1, offset, -1, -1, 1 << 20))
    return request


def send(world: World, request: FetchView, version: int = 18) -> tuple[Context, Any]:
    ctx = world.context(version)
    return ctx, fetch(ctx, request)


def decode(answer: Any, version: int = 18) -> FetchResponse:
    frame = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in answer)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, position = decode_response_header(frame[4:], version >= 12)
    assert correlation_id == 42
    return FetchResponse.decode(frame[4 + position :], version)


def errors(response: FetchResponse) -> list[int]:
    return [partition.error_code for topic in response.responses for partition in topic.partitions]


def values(response: FetchResponse) -> list[bytes | None]:
    found: list[bytes | None] = []
    for topic in response.responses:
        for partition in topic.partitions:
            raw = bytes(partition.records or b"")
            for header in iter_headers(raw):
                found += [record.value for record in iter_records(raw[header.position : header.position + header.size])]
    return found


@pytest.mark.parametrize("version", range(4, 19))
def test_records_come_back_at_every_version(version: int) -> None:
    world = World()
    world.create("t", led_by_us(), led_by_us())
    world.partition("t", 1).append(batch(b"a", b"b"), NOW_MS, 1)
    _, answer = send(world, view(("t", 1, 0), version=version), version)
    response = decode(answer, version)
    (partition,) = response.responses[0].partitions
    assert (partition.partition_index, partition.error_code, partition.high_watermark, partition.last_stable_offset) == (
        1,
        0,
        2,
        2,
    )
    assert partition.aborted_transactions is None
    assert values(response) == [b"a", b"b"]


def test_records_leave_as_slices_of_the_log_not_as_bytes() -> None:
    world = World()
    world.create("t")
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    _, answer = send(world, view(("t", 0, 0)))
    (piece,) = [part for part in answer if isinstance(part, FileSlice)]
    assert (piece.position, piece.length) == (0, len(batch(b"a")))
    assert world.partition("t").stats.bytes_out == piece.length


def test_a_fetch_without_news_waits_for_an_append() -> None:
    world = World()
    world.create("t")
    pending = Pending(*send(world, view(("t", 0, 0))))
    assert pending.parked is not None and pending.parked.deadline_ms == NOW_MS + 500
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    pending.go_on()
    assert values(decode(pending.answer)) == [b"a"]


def test_a_fetch_that_waited_in_vain_is_answered_empty() -> None:
    world = World()
    world.create("t")
    pending = Pending(*send(world, view(("t", 0, 0))))
    pending.expire()
    response = decode(pending.answer)
    assert errors(response) == [0] and response.responses[0].partitions[0].records == b""
    assert response.responses[0].partitions[0].high_watermark == 0


def test_a_fetch_that_may_not_wait_is_answered_at_once() -> None:
    world = World()
    world.create("t")
    assert errors(decode(send(world, view(("t", 0, 0), max_wait_ms=0))[1])) == [0]


def test_min_bytes_are_collected_over_several_appends() -> None:
    world = World()
    world.create("t")
    pending = Pending(*send(world, view(("t", 0, 0), min_bytes=2 * len(batch(b"a")))))
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    assert pending.parked is not None and not pending.parked.done
    world.partition("t").append(batch(b"b"), NOW_MS, 1)
    pending.go_on()
    assert values(decode(pending.answer)) == [b"a", b"b"]


def test_an_estimate_that_was_too_high_parks_the_fetch_again() -> None:
    """The partition's own limit keeps what was appended from being read: the fetch goes on waiting with its old deadline."""
    world = World()
    world.create("t")
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    request = view(min_bytes=3 * len(batch(b"a")))
    request.topics.append((None, topic_id("t"), [(0, -1, 0, -1, -1, 1)]))
    pending = Pending(*send(world, request))
    first = pending.parked
    world.partition("t").append(batch(b"b", b"b", b"b", b"b", b"b", b"b", b"b", b"b", b"b", b"b", b"b", b"b", b"b"), NOW_MS, 1)
    world.now_ms += 100
    pending.go_on()
    assert not pending.done and pending.parked is not first
    assert pending.parked is not None and pending.parked.deadline_ms == NOW_MS + 500
    pending.expire()
    assert values(decode(pending.answer)) == [b"a"]


@pytest.mark.parametrize("set_by_ms", [-3_600_000, 3_600_000])
def test_a_fetch_that_waits_again_waits_no_longer_where_the_clock_was_set_meanwhile(set_by_ms: int) -> None:
    world = World()
    world.create("t")
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    request = view(min_bytes=3 * len(batch(b"a")))
    request.topics.append((None, topic_id("t"), [(0, -1, 0, -1, -1, 1)]))
    ctx, answer = send(world, request)
    even: Any = ctx.node.runtime
    even.even_ms = lambda: NOW_MS + 100
    pending = Pending(ctx, answer)
    world.partition("t").append(batch(*[b"b"] * 13), NOW_MS, 1)
    world.now_ms += set_by_ms
    pending.go_on()
    assert not pending.done and pending.parked is not None
    assert pending.parked.deadline_ms == world.now_ms + 400


def test_errors_are_answered_at_once_each_beside_its_partition() -> None:
    world = World()
    world.create("here")
    world.create("there", ELSEWHERE)
    _, answer = send(world, view(("here", 0, 0), ("here", 5, 0), ("there", 0, 0), ("nowhere", 0, 0)))
    response = decode(answer)
    assert errors(response) == [0, 3, 6, 100]
    told = response.responses[1].partitions[0]
    assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (2, 4)
    assert [(node.node_id, node.host) for node in response.node_endpoints] == [(2, "host2")]
    assert (told.high_watermark, told.log_start_offset, told.records) == (-1, -1, b"")


def test_by_name_an_unknown_topic_is_unknown_topic_or_partition() -> None:
    assert errors(decode(send(World(), view(("t", 0, 0), version=12), 12)[1], 12)) == [3]


def test_an_offset_out_of_range_and_a_fenced_epoch_are_told() -> None:
    world = World()
    world.create("t", led_by_us(leader_epoch=5))
    assert errors(decode(send(world, view(("t", 0, 1)))[1])) == [ErrorCode.OFFSET_OUT_OF_RANGE]
    for epoch, error in ((4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        request = view()
        request.topics.append((None, topic_id("t"), [(0, epoch, 0, -1, -1, 100)]))
        assert errors(decode(send(world, request)[1])) == [error]


def test_a_diverging_follower_is_told_where_at_once() -> None:
    world = World()
    world.create("t", led_by_us(leader_epoch=0))
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    world.partition("t").update_metadata(led_by_us(leader_epoch=3))
    world.partition("t").append(batch(b"b"), NOW_MS, 1)
    request = view(replica_id=2)
    request.topics.append((None, topic_id("t"), [(0, 3, 2, 1, 0, 100)]))
    (partition,) = decode(send(world, request)[1]).responses[0].partitions
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset, partition.records) == (0, 1, b"")


def test_a_reader_of_committed_records_gets_the_list_of_aborted_transactions() -> None:
    world = World()
    world.create("t")
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    response = decode(send(world, view(("t", 0, 0), isolation_level=1))[1])
    assert response.responses[0].partitions[0].aborted_transactions == []


def test_zstd_is_not_sent_to_clients_that_cannot_read_it() -> None:
    world = World()
    world.create("t", config=LogConfig(compression_type="zstd"))
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    assert errors(decode(send(world, view(("t", 0, 0), version=9), 9)[1], 9)) == [ErrorCode.UNSUPPORTED_COMPRESSION_TYPE]
    assert values(decode(send(world, view(("t", 0, 0), version=10), 10)[1], 10)) == [b"a"]


def test_a_session_goes_from_full_to_incremental_to_closed() -> None:
    world = World()
    world.create("a")
    world.create("b")
    full = decode(send(world, view(("a", 0, 0), ("b", 0, 0), session_epoch=0, max_wait_ms=0))[1])
    assert full.session_id > 0 and errors(full) == [0, 0]
    pending = Pending(*send(world, view(session_id=full.session_id, session_epoch=1)))
    world.partition("b").append(batch(b"x"), NOW_MS, 1)
    pending.go_on()
    news = decode(pending.answer)
    assert news.session_id == full.session_id
    assert [topic.topic_id for topic in news.responses] == [topic_id("b")] and values(news) == [b"x"]
    closed = decode(send(world, view(session_id=full.session_id, session_epoch=-1))[1])
    assert closed.session_id == 0 and not closed.responses
    gone = decode(send(world, view(session_id=full.session_id, session_epoch=2))[1])
    assert (gone.error_code, gone.session_id, gone.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])


def test_session_errors_are_errors_of_the_whole_request() -> None:
    world = World()
    world.create("a")
    session_id = decode(send(world, view(("a", 0, 0), session_epoch=0, max_wait_ms=0))[1]).session_id
    wrong_epoch = decode(send(world, view(session_id=session_id, session_epoch=5))[1])
    assert wrong_epoch.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    by_name = decode(send(world, view(session_id=session_id, session_epoch=1, version=12), 12)[1], 12)
    assert by_name.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_in_a_session_a_topic_made_anew_is_inconsistent_until_forgotten() -> None:
    world = World()
    world.create("a")
    session_id = decode(send(world, view(("a", 0, 0), session_epoch=0, max_wait_ms=0))[1]).session_id
    world.delete("a")
    world.create("a", id=Uuid(b"N" * 16))
    for epoch in (1, 2):
        answer = decode(send(world, view(session_id=session_id, session_epoch=epoch))[1])
        assert errors(answer) == [ErrorCode.INCONSISTENT_TOPIC_ID] and answer.responses[0].topic_id == topic_id("a")
    assert errors(decode(send(world, view(("a", 0, 0)))[1])) == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_client_that_goes_away_leaves_nothing_behind() -> None:
    world = World()
    world.create("t")
    pending = Pending(*send(world, view(("t", 0, 0))))
    assert world.partition("t").watchers
    pending.abandon()
    assert not world.partition("t").watchers


def test_old_segments_are_read_with_the_help_of_a_thread() -> None:
    world = World()
    size = len(batch(b"a"))
    world.create("t", config=LogConfig(segment_bytes=size))
    partition = world.partition("t")
    for value in (b"a", b"b", b"c"):
        partition.append(batch(value), NOW_MS, 1)
    world.run_jobs()
    assert partition.log is not None
    partition.log.files.drop_cold_indexes()
    pending = Pending(*send(world, view(("t", 0, 0))))
    assert pending.blocking is not None
    pending.go_on()
    assert values(decode(pending.answer)) == [b"a"]


def test_a_consumer_is_told_at_once_which_replica_in_its_rack_to_read_from() -> None:
    world = World()
    world.create("t", led())
    world.manager.rack_aware = True
    brokers = {number: world.image.brokers[number]._replace(rack=f"rack {number}") for number in (1, 2)}
    world.set_brokers(brokers)
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    send(world, view(("t", 0, 1), replica_id=2, replica_epoch=5, max_wait_ms=0))
    (partition,) = decode(send(world, view(("t", 0, 0), rack_id="rack 2"))[1]).responses[0].partitions
    assert (partition.preferred_read_replica, partition.records, partition.high_watermark) == (2, b"", 1)
    (partition,) = decode(send(world, view(("t", 0, 0), rack_id="rack 1"))[1]).responses[0].partitions
    assert partition.preferred_read_replica == -1 and partition.records


def test_a_follower_is_counted_apart_from_consumers_and_may_only_be_one_that_is_a_replica() -> None:
    world = World()
    world.create("t", led())
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    answer = decode(send(world, view(("t", 0, 0), replica_id=2, replica_epoch=5))[1])
    assert values(answer) == [b"a"]
    stats = world.manager.hosted.topic_stats()["t"]
    assert stats.replication_bytes_out > 0 and stats.bytes_out == 0
    assert errors(decode(send(world, view(("t", 0, 0), replica_id=9))[1])) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


READ = (AclOperation.READ, ResourceType.TOPIC, "t")


def test_a_long_poll_does_not_return_what_the_client_may_not_read_any_more() -> None:
    world = World()
    world.create("t")
    world.create("u")
    access = world.access = Allowing({READ, (AclOperation.READ, ResourceType.TOPIC, "u")})
    world.partition("t").append(batch(b"secret"), NOW_MS, 1)
    pending = Pending(*send(world, view(("t", 0, 0), ("u", 0, 0), min_bytes=10_000)))
    assert pending.parked is not None
    access.change((AclOperation.READ, ResourceType.TOPIC, "u"))
    world.partition("u").append(batch(b"x" * 10_000), NOW_MS, 1)
    pending.go_on()
    response = decode(pending.answer)
    assert errors(response) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0]
    assert values(response) == [b"x" * 10_000]


def test_a_long_poll_that_expires_obeys_the_new_permissions_in_a_session_too() -> None:
    world = World()
    world.create("t")
    access = world.access = Allowing({READ})
    session = decode(send(world, view(("t", 0, 0), session_epoch=0, max_wait_ms=0))[1]).session_id
    pending = Pending(*send(world, view(session_id=session, session_epoch=1)))
    assert pending.parked is not None
    access.change()
    pending.expire()
    assert errors(decode(pending.answer)) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    access.change(READ)
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    _, answer = send(world, view(session_id=session, session_epoch=2))
    assert errors(decode(answer)) == [0] and values(decode(answer)) == [b"a"]


def test_a_session_asks_again_only_for_what_is_due_while_the_acls_stay() -> None:
    world = World()
    for name in ("t", "u"):
        world.create(name)
    access = world.access = Allowing({READ, (AclOperation.READ, ResourceType.TOPIC, "u")})
    session = decode(send(world, view(("t", 0, 0), ("u", 0, 0), session_epoch=0, max_wait_ms=0))[1]).session_id
    decode(send(world, view(session_id=session, session_epoch=1, max_wait_ms=0))[1])
    access.loud.clear()
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    assert errors(decode(send(world, view(session_id=session, session_epoch=2, max_wait_ms=0))[1])) == [0]
    assert access.loud == [READ]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_replica_id_without_permission_does_not_move_the_high_watermark(allowed: bool) -> None:
    """CVE-2018-1288: a plain client that says it is a follower."""
    world = World()
    world.create("t", led())
    partition = world.partition("t")
    partition.append(batch(b"a"), NOW_MS, 1)
    action = (AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    world.access = Allowing({action} if allowed else {(AclOperation.READ, ResourceType.TOPIC, partition.topic)})
    request = view((partition.topic, 0, 1), ("none", 0, 0), replica_id=2, replica_epoch=-1, max_wait_ms=0)
    response = decode(send(world, request)[1])
    assert partition.log is not None
    assert partition.log.high_watermark == (1 if allowed else 0)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert errors(response) == ([0, ErrorCode.UNKNOWN_TOPIC_ID] if allowed else [denied, denied])


def test_a_fetch_waits_for_what_the_client_may_read_and_not_for_what_it_may_not() -> None:
    world = World()
    world.create("t")
    world.create("u")
    world.access = Allowing({READ})
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert errors(decode(send(world, view(("u", 0, 0)))[1])) == [denied]
    pending = Pending(*send(world, view(("u", 0, 0), ("t", 0, 0))))
    assert pending.parked is not None
    world.partition("u").append(batch(b"hidden"), NOW_MS, 1)
    assert not pending.parked.done
    world.partition("t").append(batch(b"a"), NOW_MS, 1)
    pending.go_on()
    response = decode(pending.answer)
    assert errors(response) == [denied, 0] and values(response) == [b"a"]


def test_a_session_of_which_only_refused_partitions_are_due_waits_for_the_others() -> None:
    world = World()
    world.create("t")
    world.create("u")
    access = world.access = Allowing({READ})
    first = decode(send(world, view(("t", 0, 0), ("u", 0, 0), session_epoch=0, max_wait_ms=0))[1])
    pending = Pending(*send(world, view(session_id=first.session_id, session_epoch=1)))
    assert pending.parked is not None
    pending.expire()
    assert errors(decode(pending.answer)) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    access.change()
    _, answer = send(world, view(session_id=first.session_id, session_epoch=2))
    assert errors(decode(answer)) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
