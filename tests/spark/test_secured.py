"""The source and the sink on a cluster with TLS, logins and ACLs: with the least rights, and with one too few."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidelog.testing import Broker, allow

READ = allow("reader", "read", topic="t")
RELAY = [
    allow("relay", "read", topic="t"),
    allow("relay", "write", topic="out"),
    allow("relay", "read", "write", "create", topic="__tidelog_sink"),
    allow("relay", "write", transactional_id="tidelog-sink-", prefixed=True),
    allow("relay", "read", group="tidelog-sink-", prefixed=True),
]
ACLS = [READ, allow("describer", "describe", topic="t"), *RELAY]
USERS = {name: f"{name}-secret" for name in ("reader", "describer", "relay", "stranger")}
COUNT = 600
SESSION_MS = 2000
LIMIT_S = 120


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {
        "connections.max.reauth.ms": SESSION_MS,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
    }
    with Broker(users=USERS, acls=ACLS, tls=True, config=config) as found:
        found.create_topic("t", 2)
        found.create_topic("out", 1)
        for partition in (0, 1):
            found.produce("t", *(f"value {i}" for i in range(partition, COUNT, 2)), partition=partition)
        yield found


@pytest.fixture
def acls(broker: Broker) -> Iterator[None]:
    yield
    broker.access.set_acls(ACLS)


def login(broker: Broker, user: str, mechanism: str = "SCRAM-SHA-512", **more: str) -> dict[str, str]:
    settings = broker.access.java_settings(user, mechanism)
    return {f"kafka.{name}": text for name, text in settings.items()} | {"subscribe": "t", "startingOffsets": "earliest", **more}


def wrong_password(broker: Broker) -> dict[str, str]:
    options = login(broker, "reader")
    entry = options["kafka.sasl.jaas.config"].replace("reader-secret", "not-my-secret")
    return options | {"kafka.sasl.jaas.config": entry}


def error_of(action: Any) -> str:
    with pytest.raises(Exception) as caught:
        action()
    return str(caught.value)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_batch_needs_read_on_its_topic_and_no_more(spark: Any, broker: Broker, mechanism: str) -> None:
    rows = spark.read.format("tidelog").options(**login(broker, "reader", mechanism)).load()
    found = rows.selectExpr("partition", "offset").collect()
    assert sorted(map(tuple, found)) == [(each.partition, each.offset) for each in broker.messages("t")]


def test_a_stream_goes_on_over_sessions_that_end_and_ends_with_the_right_to_read(
    spark: Any, broker: Broker, acls: None, tmp_path: Path
) -> None:
    stream = spark.readStream.format("tidelog").options(**login(broker, "reader")).load()
    writer = stream.writeStream.format("memory").queryName("secured").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime="100 milliseconds").start()
    deadline, sent, began = time.monotonic() + LIMIT_S, COUNT, time.monotonic()
    try:
        while spark.table("secured").count() < sent or time.monotonic() < began + 2 * SESSION_MS / 1000:
            assert query.exception() is None
            assert time.monotonic() < deadline, f"{spark.table('secured').count()} of {sent} rows"
            if time.monotonic() < began + 2 * SESSION_MS / 1000:
                broker.produce("t", "more")
                sent += 1
        assert spark.table("secured").count() == sent
        broker.access.set_acls([])
        broker.produce("t", "not for you")
        while query.isActive:
            assert time.monotonic() < deadline, "the query does not end"
            time.sleep(0.1)
    finally:
        query.stop()
    assert "kafka-acls --add --allow-principal User:reader --operation Read --topic t" in str(query.exception())


def test_what_is_missing_is_told_by_the_driver_and_by_an_executor(spark: Any, broker: Broker) -> None:
    def batch(options: dict[str, str]) -> Any:
        return spark.read.format("tidelog").options(**options).load().collect()

    said = error_of(lambda: batch(wrong_password(broker)))
    assert "refuses user 'reader' (SCRAM-SHA-512)" in said
    assert "Check kafka.sasl.username and kafka.sasl.password, or kafka.sasl.jaas.config." in said
    assert "not-my-secret" not in said
    said = error_of(lambda: batch(login(broker, "stranger")))
    assert "The topic 't' cannot be used: TOPIC_AUTHORIZATION_FAILED" in said
    assert "kafka-acls --add --allow-principal User:stranger --operation Read --topic t" in said
    # With Describe the driver plans the batch, and an executor is refused.
    said = error_of(lambda: batch(login(broker, "describer")))
    assert "cannot be read: TOPIC_AUTHORIZATION_FAILED" in said
    assert "kafka-acls --add --allow-principal User:describer --operation Read --topic t" in said


def relay(spark: Any, broker: Broker, folder: Path) -> None:
    stream = spark.readStream.format("tidelog").options(**login(broker, "relay", maxOffsetsPerTrigger="400")).load()
    options = {name: text for name, text in login(broker, "relay", "PLAIN").items() if name.startswith("kafka.")}
    writer = stream.selectExpr("value").writeStream.format("tidelog").options(**options, topic="out", inlineBytes="1000")
    writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start().awaitTermination()


def test_a_topic_sink_says_which_right_it_lacks(spark: Any, broker: Broker, acls: None) -> None:
    options = {name: text for name, text in login(broker, "relay").items() if name.startswith("kafka.")}
    writer = spark.range(3).selectExpr("cast(id as string) value").write.format("tidelog").mode("append")
    wanted = {1: "Write --topic out", 3: "Write on the transactional ids", 4: "Read on the groups"}
    for missing, said in wanted.items():
        broker.access.set_acls([rule for number, rule in enumerate(RELAY) if number != missing])
        assert said in error_of(lambda: writer.options(**options, topic="out", txnAppId="a", txnVersion="0").save())


def test_a_stream_from_topic_to_topic_with_the_least_rights(spark: Any, broker: Broker, tmp_path: Path) -> None:
    relay(spark, broker, tmp_path)
    written = sorted(each.value or b"" for each in broker.messages("out", committed=True))
    assert written == sorted(each.value or b"" for each in broker.messages("t"))
