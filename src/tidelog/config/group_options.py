"""Options of single groups, and of client metrics subscriptions (KIP-714)."""

from __future__ import annotations

from typing import Final

from tidelog.config.options import (
    AT_LEAST_1,
    BOOLEAN,
    CLUSTER,
    INT,
    LIST,
    MEDIUM,
    STRING,
    Check,
    OneOf,
    Option,
    Type,
    Value,
    table,
)

_NO_TELEMETRY = "client metrics are not collected yet"


def _row(
    name: str, type_: Type, default: Value, doc: str, inert: str | None = None, *, broker: bool = True, check: Check | None = None
) -> Option:
    """``broker``: a group that does not set the option follows ``group.<name>`` of the broker, bounds included."""
    return Option(
        name,
        type_,
        default,
        MEDIUM,
        CLUSTER,
        doc,
        inert=inert,
        check=check,
        falls_back_to=((f"group.{name}", 1),) if broker else (),
    )


GROUP_OPTIONS: Final[dict[str, Option]] = table((
    _row("consumer.assignment.interval.ms", INT, 1000, "The shortest time between two assignments of the group, in ms."),
    _row("consumer.heartbeat.interval.ms", INT, 5000, "How often a member sends heartbeats, in ms."),
    _row("consumer.session.timeout.ms", INT, 45_000,
         "How long a member may miss heartbeats before it is removed from the group, in ms."),
    _row("errors.deadletterqueue.copy.record.enable", BOOLEAN, False,
         "Whether dead letters have key and value of the record, or only headers that say which record it was.", broker=False),
    _row("errors.deadletterqueue.topic.name", STRING, "",
         "The topic for records that the share group rejected or could not process; empty for none. The topic needs "
         "errors.deadletterqueue.group.enable, and share.version has to be 2.", broker=False),
    _row("share.assignment.interval.ms", INT, 1000,
         "The shortest time between two assignments of the share group, in ms."),
    _row("share.auto.offset.reset", STRING, "latest", "Where a new share group starts: earliest, latest or by_duration:PERIOD.",
         broker=False),
    _row("share.delivery.count.limit", INT, 5, "How often a record is delivered before it is archived."),
    _row("share.heartbeat.interval.ms", INT, 5000, "How often a member of the share group sends heartbeats, in ms."),
    _row("share.isolation.level", STRING, "read_uncommitted", "Whether records of open and aborted transactions are delivered.",
         broker=False, check=OneOf("read_committed", "read_uncommitted")),
    _row("share.partition.max.record.locks", INT, 2000,
         "The most records of one partition that are acquired at a time."),
    _row("share.record.lock.duration.ms", INT, 30_000,
         "How long a delivered record stays acquired by its consumer, in ms."),
    _row("share.renew.acknowledge.enable", BOOLEAN, True, "Whether a consumer may renew the acquisition of a record.",
         broker=False),
    _row("share.session.timeout.ms", INT, 45_000, "How long a member of the share group may miss heartbeats, in ms."),
    _row("streams.assignment.interval.ms", INT, 1000, "The shortest time between two assignments of the streams group, in ms."),
    _row("streams.heartbeat.interval.ms", INT, 5000, "How often a member of the streams group sends heartbeats, in ms."),
    _row("streams.initial.rebalance.delay.ms", INT, 3000, "How long the first assignment waits for more members, in ms."),
    _row("streams.num.standby.replicas", INT, 0, "Standby copies of each stateful task."),
    _row("streams.session.timeout.ms", INT, 45_000, "How long a member of the streams group may miss heartbeats, in ms."),
))  # fmt: skip

CLIENT_METRICS_OPTIONS: Final[dict[str, Option]] = table((
    _row("interval.ms", INT, 300_000, "How often matching clients send their metrics, in ms.", _NO_TELEMETRY, broker=False,
         check=AT_LEAST_1),
    _row("match", LIST, (), "The clients to match: selector=pattern pairs.", _NO_TELEMETRY, broker=False),
    _row("metrics", LIST, (),
         "Prefixes of the metrics to collect; * collects all, an empty list none.", _NO_TELEMETRY, broker=False),
))  # fmt: skip
