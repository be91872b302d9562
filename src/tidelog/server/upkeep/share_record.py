"""/facts/share-record?group=G&topic=T&partition=P&offset=O: what a node knows of one record of a share group.

The leader of the partition knows what is in flight and who holds it; the share coordinator knows what is stored. The answer has
one range of offsets each, however much is in flight. The reader needs DESCRIBE on the group and on the topic, as for
DescribeShareGroupOffsets.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs

from tidelog.broker.shares.hosted_share import HostedShare, Phase
from tidelog.broker.shares.share_sessions import Place
from tidelog.coordinator.share.records import ShareKey
from tidelog.metrics.facts import SCHEMA
from tidelog.model.acl import ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.server.upkeep.http import Answer, Reader

if TYPE_CHECKING:
    from tidelog.broker.node import Broker
    from tidelog.model.ids import Uuid
    from tidelog.replication.share.record_state import InFlightRange, StateBatch

LONGEST: Final = 249
"""Characters of a topic's name; a group's may be longer."""
LARGEST_OFFSET: Final = (1 << 63) - 1
_USAGE: Final = Answer(400, b"Ask for ?group=GROUP&topic=TOPIC&partition=NUMBER&offset=NUMBER.\n")
_DENIED: Final = Answer(403, b"This page needs DESCRIBE on the group and on the topic.\n")
_MISSING: Final = Answer(404, b"There is no such partition.\n")

Shows = Callable[[Reader, ResourceType, str], bool]
"""Whether a reader may describe a resource."""


class Asked(NamedTuple):
    """One record of a share group."""

    group: str
    topic: str
    partition: int
    offset: int


def share_record(broker: Broker, reader: Reader, shows: Shows) -> Answer:
    """The answer to a reader."""
    asked = asked_for(reader.query)
    if asked is None:
        return _USAGE
    if not shows(reader, ResourceType.GROUP, asked.group) or not shows(reader, ResourceType.TOPIC, asked.topic):
        return _DENIED
    topic = broker.image.topics.by_name.get(asked.topic)
    if topic is None or asked.partition >= len(topic.partitions):
        return _MISSING
    limits = broker.share_partitions.settings.limits(asked.group)
    page = {
        "schema": SCHEMA,
        "at_ms": broker.runtime.now_ms(),
        "node": {"id": broker.node_id},
        "record": asked._asdict(),
        "settings": {
            "delivery_count_limit": limits.delivery_count,
            "max_record_locks": limits.max_locks,
            "lock_duration_ms": limits.lock_ms,
            "committed_only": broker.share_partitions.settings.committed_only(asked.group),
            "dead_letter_topic": broker.share_partitions.settings.dead_letter_topic(asked.group) if limits.dead_letters else None,
        },
        "leader": _leader(broker, asked, topic.id),
        "stored": _stored(broker, asked, topic.id),
    }
    return Answer(200, json.dumps(page, separators=(",", ":")).encode() + b"\n", "application/json")


def asked_for(query: str) -> Asked | None:
    """What the query asks for; None for one that is not whole."""
    try:
        found = parse_qs(query, strict_parsing=True, max_num_fields=4)
        values = {name: found[name][0] for name in Asked._fields if len(found[name]) == 1}
        asked = Asked(values["group"], values["topic"], _number(values["partition"]), _number(values["offset"]))
    except (ValueError, KeyError):
        return None
    return asked if len(asked.topic) <= LONGEST and asked.offset <= LARGEST_OFFSET else None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ValueError(text)
    return int(text)


def _leader(broker: Broker, asked: Asked, topic_id: Uuid) -> dict[str, Any] | None:
    """What the leader knows; None on any other node."""
    partition = broker.replicas.by_id(topic_id, asked.partition)
    if isinstance(partition, ErrorCode) or not partition.is_leader or partition.log is None:
        return None
    hosted = broker.share_partitions.find(asked.group, Place(topic_id, asked.partition))
    return {
        "leader_epoch": partition.leader_epoch,
        "log_start_offset": partition.log.log_start_offset,
        "high_watermark": partition.log.high_watermark,
        "last_stable_offset": partition.log.last_stable_offset,
        "share": None if hosted is None else _share(hosted, asked.offset, broker.runtime.even_ms()),
    }


def _share(hosted: HostedShare, offset: int, now_ms: int) -> dict[str, Any]:
    if hosted.phase is not Phase.ACTIVE:
        error = None if hosted.error is ErrorCode.NONE else hosted.error.name
        return {"phase": hosted.phase.value, "error": error}
    machine = hosted.machine
    return {
        "phase": hosted.phase.value,
        "error": None,
        "start_offset": machine.start_offset,
        "end_offset": machine.end_offset,
        "in_flight": machine.in_flight,
        "finished_above_start": machine.delivery_complete_count,
        "state": _range(machine.ranges.at(offset), now_ms),
        "first": _range(machine.ranges.at(machine.start_offset), now_ms),
    }


def _range(found: InFlightRange | None, now_ms: int) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "first": found.first,
        "last": found.last,
        "state": found.state.name.lower(),
        "delivery_count": found.delivery_count,
        "member": found.member,
        "lock_left_ms": None if found.member is None else max(0, found.deadline_ms - now_ms),
        "persisting": found.persisting,
    }


def _stored(broker: Broker, asked: Asked, topic_id: Uuid) -> dict[str, Any] | None:
    """What the share coordinator has stored; None where this node is not the coordinator, or nothing is stored."""
    key = ShareKey(asked.group, topic_id, asked.partition)
    shard = broker.shares.find(key.text, writes=False) if broker.shares.exists else ErrorCode.NOT_COORDINATOR
    stored = None if isinstance(shard, ErrorCode) or shard.machine is None else shard.machine.stored(key)
    if stored is None:
        return None
    return {
        "start_offset": stored.start_offset,
        "finished_above_start": stored.complete_count,
        "state_epoch": stored.state_epoch,
        "leader_epoch": stored.leader_epoch,
        "state": _batch(next((each for each in stored.batches if each.first <= asked.offset <= each.last), None)),
    }


def _batch(found: StateBatch | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"first": found.first, "last": found.last, "state": found.state.name.lower(), "delivery_count": found.delivery_count}
