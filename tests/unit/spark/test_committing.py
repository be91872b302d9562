"""A batch is in the topic once and whole, wherever its driver dies, with other drivers alive, and however the replay differs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.client.producer_settings import parse_producer_settings
from tidelog.client.settings import READ_COMMITTED, parse_settings
from tidelog.model.ids import LATEST_TIMESTAMP, TopicPartition
from tidelog.records.builder import RecordData, build_batch
from tidelog.spark.appending import Batch, Fenced, WriteFailed
from tidelog.spark.cluster import Cluster
from tidelog.spark.committing import MAX_METADATA, MAX_PIECES, STEPS, Committer, Numbered
from tidelog.spark.reader import PartitionReader, ReadSettings, ReadTask
from tidelog.testing import Broker

APP, STATE = "app", "state"
PARTITIONS = 3


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@pytest.fixture(params=["transaction.version 2", "before it"])
def broker(node: Broker, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Broker:
    node.reset()
    node.create_topic("t", PARTITIONS)
    node.create_topic("state", 8)
    if request.param == "before it":
        monkeypatch.setattr("tidelog.spark.committing.joins_by_writing", lambda features: False)
    return node


def made(broker: Broker, reached: Callable[[str], None] = lambda step: None, app: str = APP, **kafka: str) -> Committer:
    told = {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "1"}
    settings, _ = parse_producer_settings({name.replace("_", "."): text for name, text in kafka.items()})
    return Committer(Cluster(parse_settings(told)), settings, app, STATE, 20_000, reached)


def rows(run: str, count: int = 6) -> Callable[[], list[Batch]]:
    """Batches of a run: two in each partition, so that there is something between them."""

    def batches() -> list[Batch]:
        return [
            (TopicPartition("t", i % PARTITIONS), build_batch([RecordData(None, f"{run} {i} {j}".encode(), 1) for j in range(2)]))
            for i in range(count)
        ]

    return batches


def values(run: str, count: int = 6) -> list[str]:
    return sorted(f"{run} {i} {j}" for i in range(count) for j in range(2))


def landed(broker: Broker) -> list[str]:
    """What a reader of committed records sees, up to where it may read."""
    client = parse_settings({"bootstrap.servers": broker.bootstrap_servers})
    cluster, found = Cluster(client), []
    ends = cluster.offsets({TopicPartition("t", i): LATEST_TIMESTAMP for i in range(PARTITIONS)}, READ_COMMITTED)
    for at, end in ends.items():
        task = ReadTask(at, 0, end, cluster.topics(("t",))["t"].topic_id, None)
        for batch in PartitionReader(cluster, ReadSettings(client, ("value",), True, 20_000, 1 << 20), task).batches():
            found += [value.decode() for value in batch.column(0).to_pylist()]
    cluster.close()
    return sorted(found)


def killed_at(broker: Broker, step: str, run: str, number: int) -> None:
    """Run a commit in a process that is killed when it reaches ``step``."""
    child = os.fork()
    if child == 0:

        def reached(now: str) -> None:
            if now == step:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            made(broker, reached).commit(Numbered(number), rows(run))
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize("step", [*STEPS, "first append"])
def test_a_driver_killed_between_two_steps_leaves_a_batch_that_is_written_once_and_whole_with_other_rows_next_time(
    broker: Broker, step: str
) -> None:
    assert made(broker).commit(Numbered(0), rows("zero"))
    killed_at(broker, step, "dead", 1)
    again = made(broker).commit(Numbered(1), rows("again", 4))
    assert again is (step != "decided")
    assert made(broker).commit(Numbered(2), rows("two", 1))
    first = values("again", 4) if again else values("dead")
    assert landed(broker) == sorted(values("zero") + first + values("two", 1))
    assert made(broker).last() == (2, "")


def test_the_same_batch_again_does_nothing_and_does_not_even_make_its_rows(broker: Broker) -> None:
    assert made(broker).commit(Numbered(0, "about it"), rows("a"))
    assert not made(broker).commit(Numbered(0), lambda: pytest.fail("asked for"))
    assert made(broker).last() == (0, "about it")
    assert landed(broker) == values("a")


@pytest.mark.parametrize("step", STEPS)
def test_an_old_driver_that_wakes_up_beside_its_successor_writes_nothing_twice(broker: Broker, step: str) -> None:
    """The successor commits the whole batch while the old one stands still at ``step``."""

    def successor(now: str) -> None:
        if now == step:
            made(broker).commit(Numbered(0), rows("new"))

    old = made(broker, successor)
    if step in ("begin", "begun", "decided"):
        # Before it has looked for the number it finds the successor's; after its commit the successor finds its own there.
        assert old.commit(Numbered(0), rows("old")) is (step == "decided")
    else:
        with pytest.raises((Fenced, WriteFailed)):
            old.commit(Numbered(0), rows("old"))
    assert landed(broker) == values("old" if step == "decided" else "new")


def test_an_old_driver_that_begins_after_its_successor_has_fences_it_and_one_of_them_writes(broker: Broker) -> None:
    def intruder(now: str) -> None:
        if now == "numbered":
            made(broker).commit(Numbered(0), rows("intruder"))

    with pytest.raises(WriteFailed):
        made(broker, intruder).commit(Numbered(0), rows("first"))
    assert not made(broker).commit(Numbered(0), rows("again"))
    assert landed(broker) == values("intruder")


@pytest.mark.parametrize(
    "api", ["INIT_PRODUCER_ID", "OFFSET_FETCH", "PRODUCE", "TXN_OFFSET_COMMIT", "END_TXN", "FIND_COORDINATOR"]
)
def test_a_lost_answer_changes_nothing(broker: Broker, api: str) -> None:
    broker.faults.lose_answer(api)
    broker.faults.drop(api)
    assert made(broker).commit(Numbered(0), rows("a"))
    assert broker.faults.pending == 0
    assert landed(broker) == values("a")


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("INIT_PRODUCER_ID", "CONCURRENT_TRANSACTIONS"),
        ("INIT_PRODUCER_ID", "NOT_COORDINATOR"),
        ("OFFSET_FETCH", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("PRODUCE", "NOT_LEADER_OR_FOLLOWER"),
        ("PRODUCE", "NOT_ENOUGH_REPLICAS"),
        ("END_TXN", "COORDINATOR_NOT_AVAILABLE"),
    ],
)
def test_what_passes_is_waited_out(broker: Broker, api: str, error: str) -> None:
    broker.faults.refuse(api, error, times=2)
    assert made(broker).commit(Numbered(0), rows("a"))
    assert broker.faults.pending == 0
    assert landed(broker) == values("a")


@pytest.mark.parametrize(
    ("api", "error", "told"),
    [
        ("PRODUCE", "MESSAGE_TOO_LARGE", "smaller kafka.batch.size"),
        ("PRODUCE", "OUT_OF_ORDER_SEQUENCE_NUMBER", "A batch for t-"),
        ("PRODUCE", "INVALID_PRODUCER_EPOCH", "another run of this query"),
        ("END_TXN", "INVALID_TXN_STATE", "commit the transaction"),
        ("INIT_PRODUCER_ID", "INVALID_TRANSACTION_TIMEOUT", "transaction.max.timeout.ms"),
    ],
)
def test_what_does_not_pass_is_told_and_nothing_of_the_batch_is_seen(broker: Broker, api: str, error: str, told: str) -> None:
    broker.faults.refuse(api, error)
    with pytest.raises(WriteFailed, match=told.replace(".", r"\.")):
        made(broker).commit(Numbered(0), rows("a"))
    assert landed(broker) == []
    assert made(broker).commit(Numbered(0), rows("b"))
    assert landed(broker) == values("b")


def test_a_batch_of_a_name_without_a_number_is_refused_until_the_user_says_where_to_go_on(broker: Broker) -> None:
    with pytest.raises(WriteFailed, match="to write it set firstBatch=5, to skip it firstBatch=6"):
        made(broker).commit(Numbered(5), rows("a"))
    assert landed(broker) == []
    assert made(broker).commit(Numbered(5, first=5), rows("b"))
    assert not made(broker, app="other").commit(Numbered(5, first=6), rows("c"))
    assert made(broker, app="other").commit(Numbered(6, first=6), rows("d"))
    assert landed(broker) == sorted(values("b") + values("d"))


def test_a_long_text_is_kept_in_pieces_and_a_shorter_one_after_it_is_whole(broker: Broker) -> None:
    long = "".join(str(i % 10) for i in range(MAX_METADATA * MAX_PIECES))
    for number, text in enumerate([long, "short", long[: MAX_METADATA + 1], ""]):
        assert made(broker).commit(Numbered(number, text), list)
        assert made(broker).last() == (number, text)


def test_without_a_number_a_batch_is_one_transaction(broker: Broker) -> None:
    assert made(broker).commit(None, rows("a"))
    assert made(broker).commit(None, rows("b"))
    assert made(broker).commit(None, list)
    assert landed(broker) == sorted(values("a") + values("b"))
