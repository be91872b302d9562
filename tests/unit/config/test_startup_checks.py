"""What one option alone cannot tell; the whole list of refusals is in test_resolve."""

from __future__ import annotations

import pytest

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.resolve import BrokerConfig
from tidelog.config.startup_checks import _ORDERED, change_problems, dynamic_problems, start_problems


def test_the_defaults_of_every_ordered_pair_are_in_order() -> None:
    assert start_problems(BrokerConfig({}), {}) == []
    for low, high in _ORDERED:
        smaller, greater = BROKER_OPTIONS[low].default, BROKER_OPTIONS[high].default
        assert isinstance(smaller, int)
        assert isinstance(greater, int)
        assert smaller <= greater


@pytest.mark.parametrize(("low", "high"), _ORDERED)
def test_each_pair_out_of_order_is_a_problem_that_names_both(low: str, high: str) -> None:
    config = BrokerConfig({})
    setattr(config, BROKER_OPTIONS[low].attribute, 5)
    setattr(config, BROKER_OPTIONS[high].attribute, 4)
    assert f"{low} is 5, but must not be greater than {high}, which is 4." in start_problems(config, {})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097152"}, "must be more than 1048576 for each"),
        ({"log.cleaner.threads": "0"}, "log.cleaner.threads is 0, but must be at least 1"),
        ({"log.roll.ms": "0"}, "log.roll.ms is 0"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms is -1"),
    ],
)
def test_bounds_of_logs_and_their_cleaner_stop_a_start_and_a_change(given: dict[str, str], said: str) -> None:
    (problem,) = start_problems(BrokerConfig(given), given)
    assert said in problem
    assert change_problems(BrokerConfig({}), BrokerConfig(given)) == [problem]
    assert change_problems(BrokerConfig(given), BrokerConfig(given)) == [], "an old mistake stops no other change"
    assert dynamic_problems(BrokerConfig({}), BrokerConfig(given), given) == [], "what is stored is taken over"
    enough = {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097154"}
    assert start_problems(BrokerConfig(enough), enough) == []


@pytest.mark.parametrize(
    ("retention", "local", "refused"),
    [("1000", "1000", 0), ("1000", "-2", 0), ("-1", "-1", 0), ("1000", "1001", 1), ("1000", "-1", 1)],
)
def test_a_change_keeps_no_more_on_local_disk_than_at_all(retention: str, local: str, refused: int) -> None:
    for what in ("ms", "bytes"):
        after = BrokerConfig({f"log.retention.{what}": retention, f"log.local.retention.{what}": local})
        assert len(change_problems(BrokerConfig({}), after)) == refused
        assert change_problems(after, after) == []


def test_problems_come_as_sentences() -> None:
    given = {"authorizer.class.name": "x", "default.replication.factor": "3", "node.id": "1", "broker.id": "2"}
    problems = start_problems(BrokerConfig(given), given)
    assert len(problems) == 3
    assert all(problem.endswith(".") for problem in problems)


def test_a_replica_selector_that_would_have_to_be_run_is_a_problem() -> None:
    (problem,) = start_problems(BrokerConfig({"replica.selector.class": "com.example.Mine"}), {})
    assert problem.startswith("replica.selector.class is com.example.Mine")
    rack_aware = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert start_problems(BrokerConfig({"replica.selector.class": rack_aware}), {}) == []


def test_a_controller_alone_has_no_audit_topic_and_no_internal_topic_is_one() -> None:
    given = {
        "process.roles": "controller",
        "node.id": "1",
        "listeners": "CONTROLLER://:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@localhost:9093",
        "tidelog.audit.topic": "__audit",
    }
    (problem,) = start_problems(BrokerConfig(given), given)
    assert "Set tidelog.audit.file" in problem
    assert start_problems(BrokerConfig(given | {"tidelog.audit.topic": ""}), given) == []
    for name in ("__consumer_offsets", "a b", "..", "x" * 250):
        (problem,) = start_problems(BrokerConfig({"tidelog.audit.topic": name}), {})
        assert problem == f"tidelog.audit.topic is {name}, which cannot be a topic of its own. Set a name such as __audit."
    assert start_problems(BrokerConfig({"tidelog.audit.topic": "__audit"}), {}) == []


def test_a_dry_run_needs_an_authorizer_to_try() -> None:
    given = {"tidelog.authorizer.dry.run": "true"}
    (problem,) = start_problems(BrokerConfig(given), given)
    assert "authorizer.class.name is not set" in problem
    given |= {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    assert start_problems(BrokerConfig(given), given) == []
