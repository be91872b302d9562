"""What the audit of nodes says about denials that concern a group. Only one who may read the audit's topic sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidelog.client.admin.configs import describe as describe_configs
from tidelog.client.admin.results import ResourceType
from tidelog.client.admin.topics import list_offsets
from tidelog.client.admin.topics import topics as topics_call
from tidelog.client.calls import Call, Coordinator, Locate
from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.console.audit_events import Denial, events
from tidelog.console.log_collecting import fetched
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import LATEST_TIMESTAMP

AUDIT_TOPIC: Final = "tidelog.audit.topic"
MOST_EVENTS: Final = 1000
"""The last ones of each partition."""
MOST_PARTITIONS: Final = 10
MOST_BYTES: Final = 4 << 20


def denials(group_id: str, topics: Iterable[str], since_ms: int) -> Call[tuple[Denial, ...]]:
    """Those since then about the group and these topics, the newest last; empty without an audit, or for one who may not read
    it."""
    wanted = {("GROUP", group_id), *(("TOPIC", topic) for topic in topics)}
    try:
        node_id, _, _ = yield Locate(Coordinator(group_id))
        entry = (yield from describe_configs(ResourceType.BROKER, str(node_id), [AUDIT_TOPIC])).get(AUDIT_TOPIC)
        if entry is None or not entry.value:
            return ()
        found = yield from _events(entry.value)
    except (KafkaError, UnsupportedByBroker, NoConnection):
        return ()
    return tuple(sorted((each for each in found if each.at_ms >= since_ms and (each.kind, each.name) in wanted), key=_time))


def _events(audit: str) -> Call[list[Denial]]:
    (topic,) = yield from topics_call([audit])
    if topic.error_code != ErrorCode.NONE:
        return []
    leaders = {(audit, part.partition_index): part.leader_id for part in topic.partitions if part.leader_id >= 0}
    leaders = dict(sorted(leaders.items())[:MOST_PARTITIONS])
    ends = yield from list_offsets(dict.fromkeys(leaders, LATEST_TIMESTAMP))
    found: list[Denial] = []
    for at, end in ends.items():
        begin = max(0, end.offset - MOST_EVENTS)
        while begin < end.offset:
            records = yield from fetched(at, leaders[at], topic.topic_id, begin, MOST_BYTES)
            read, following = events(bytes(records), begin)
            found += read
            if following <= begin:
                break
            begin = following
    return found


def _time(found: Denial) -> int:
    return found.at_ms
