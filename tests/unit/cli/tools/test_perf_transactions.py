"""When the transactions of ``producer-perf-test`` begin and end."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.perf_transactions import DEFAULT_DURATION_MS, ID, ID_PREFIX, Transactions, settings


class Producer:
    """Writes down what is asked of it; ``failures`` are raised by the calls in their order, None for none."""

    def __init__(self, *failures: KafkaException | None) -> None:
        self.calls: list[str] = []
        self._failures = list(failures)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self._failures and (failure := self._failures.pop(0)) is not None:
            raise failure

    def init_transactions(self, timeout: float) -> None:
        self._call("init")

    def begin_transaction(self) -> None:
        self._call("begin")

    def flush(self) -> None:
        self._call("flush")

    def commit_transaction(self, timeout: float) -> None:
        self._call("commit")


def failure(*, retriable: bool) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, "too slow", retriable=retriable))


def test_a_transaction_is_committed_when_it_is_old_enough_and_at_the_end() -> None:
    producer = Producer()
    transactions = Transactions(producer, 100)
    for now in (0.0, 0.05, 0.1, 0.2, 0.25):
        transactions.before_send(now)
        producer.calls.append(f"send {now}")
        transactions.after_send(now)
    transactions.commit()
    transactions.commit()
    one = ["begin", "send 0.0", "send 0.05", "send 0.1", "flush", "commit"]
    assert producer.calls == ["init", *one, "begin", "send 0.2", "send 0.25", "flush", "commit"]


@pytest.mark.parametrize(
    ("given", "flag", "duration_ms", "expected"),
    [
        ({}, None, None, None),
        ({}, "mine", None, DEFAULT_DURATION_MS),
        ({}, "mine", 7, 7),
        ({ID: "of-file"}, None, None, DEFAULT_DURATION_MS),
        ({ID: "of-file"}, "mine", None, DEFAULT_DURATION_MS),
    ],
)
def test_an_id_or_a_duration_makes_transactions(
    given: dict[str, str], flag: str | None, duration_ms: int | None, expected: int | None
) -> None:
    before = dict(given)
    assert settings(given, flag, duration_ms) == expected
    assert given.get(ID) == (flag or before.get(ID))


def test_without_an_id_each_run_has_another() -> None:
    ids = []
    for _ in range(2):
        java: dict[str, str] = {}
        assert settings(java, None, 5) == 5
        ids.append(java[ID])
    assert all(each.startswith(ID_PREFIX) for each in ids)
    assert ids[0] != ids[1]


def test_what_may_be_tried_again_is_and_the_rest_ends_the_run() -> None:
    patient = Producer(failure(retriable=True), None)
    Transactions(patient, 1)
    assert patient.calls == ["init", "init"]
    with pytest.raises(CommandFailed, match="init_transactions failed: too slow"):
        Transactions(Producer(failure(retriable=False)), 1)
    with pytest.raises(CommandFailed, match="too slow"):
        Transactions(Producer(*[failure(retriable=True)] * 9), 1)
