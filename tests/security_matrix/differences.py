"""Where tidelog answers differently on purpose, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.security_matrix.table import Key


@dataclass(frozen=True)
class Difference:
    """Rows by pattern, the parts of the outcomes that differ, and the reason."""

    apis: str
    states: str
    theirs: str
    """A pattern in Apache Kafka's outcome ..."""
    ours: str
    """... and what stands there in tidelog's."""
    reason: str
    listeners: str = "*"

    def covers(self, key: Key, theirs: str, ours: str) -> bool:
        """Whether two outcomes of a cell differ in this way, and in no other."""
        listener, api, _, state, _ = key
        named = fnmatchcase(listener, self.listeners) and api in self.apis.split() and fnmatchcase(state, self.states)
        return named and re.sub(self.theirs, self.ours, theirs) == ours


BAD_FILTER = "An ACL filter with an unknown operation is answered. Apache Kafka closes the connection while it parses."
VALIDATED_FIRST = "Permissions come before validation: without them an error says nothing about the resource."

ON_PURPOSE: tuple[Difference, ...] = (
    Difference(
        "METADATA",
        "created, *",
        r"\[UNKNOWN_TOPIC_OR_PARTITION",
        "[LEADER_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE: the topic that the request creates exists by then. Apache Kafka says UNKNOWN_TOPIC_OR_PARTITION;"
        " clients retry on both.",
    ),
    Difference(
        "ALTER_SHARE_GROUP_OFFSETS",
        "*",
        r" id=\S+ (partitions\[partition_index=\d+ TOPIC_AUTHORIZATION_FAILED)",
        r" \1",
        "The id of a topic that the client may not read stays hidden. Apache Kafka's answer has it.",
    ),
    Difference(
        "SHARE_FETCH",
        "topic missing",
        r"^UNKNOWN_SERVER_ERROR responses\[\]$",
        "ok responses[id=? partitions[partition_index=0 UNKNOWN_TOPIC_ID acknowledge_error=ok current_leader(leader_epoch=+)"
        " records=none acquired_records=none]]",
        "An unknown topic id is an error of its partition. Apache Kafka refuses the whole request with UNKNOWN_SERVER_ERROR.",
    ),
    Difference(
        "DESCRIBE_SHARE_GROUP_OFFSETS",
        "topics mixed, without a name",
        "UNKNOWN_SERVER_ERROR",
        "INVALID_GROUP_ID",
        "A group without a name is refused for what it is.",
    ),
    Difference("DESCRIBE_ACLS", "bad filter", "^closed$", "INVALID_REQUEST resources[]", BAD_FILTER),
    Difference("DESCRIBE_ACLS", "bad filter", "^closed$", "CLUSTER_AUTHORIZATION_FAILED resources[]", BAD_FILTER),
    Difference("DELETE_ACLS", "bad filter", "^closed$", "filter_results[INVALID_REQUEST matching_acls[]]", BAD_FILTER),
    Difference(
        "DELETE_ACLS", "bad filter", "^closed$", "filter_results[CLUSTER_AUTHORIZATION_FAILED matching_acls[]]", BAD_FILTER
    ),
    Difference(
        "ALTER_CONFIGS INCREMENTAL_ALTER_CONFIGS",
        "*",
        "(?:INVALID_REQUEST|UNSUPPORTED_VERSION) (resource_type=(?:4|8|77) )",
        r"CLUSTER_AUTHORIZATION_FAILED \1",
        VALIDATED_FIRST,
    ),
    Difference(
        "ALTER_CONFIGS INCREMENTAL_ALTER_CONFIGS",
        "unknown type*",
        "UNSUPPORTED_VERSION",
        "INVALID_REQUEST",
        "An unknown resource type is the same error at a controller as at a broker.",
        listeners="controller",
    ),
    Difference(
        "INCREMENTAL_ALTER_CONFIGS",
        "topic missing, unknown config",
        "INVALID_CONFIG",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "Of two errors the answer has the one about the topic: it does not exist.",
    ),
    Difference(
        "ALTER_CONFIGS INCREMENTAL_ALTER_CONFIGS",
        "broker missing*",
        "BROKER_ID_NOT_REGISTERED",
        "ok",
        "A controller stores settings of a broker before the broker registers for the first time.",
        listeners="controller",
    ),
    Difference(
        "LIST_PARTITION_REASSIGNMENTS",
        "*",
        r"^CLUSTER_AUTHORIZATION_FAILED topics\[.*\]$",
        "CLUSTER_AUTHORIZATION_FAILED topics[]",
        "A refusal lists no partitions. Apache Kafka repeats those of the request, without replicas and without an error.",
    ),
    Difference(
        "DESCRIBE_LOG_DIRS",
        "*",
        r"^ok results\[\]$",
        "ok results[CLUSTER_AUTHORIZATION_FAILED topics[]]",
        "Versions 1 and 2 have no error but that of a log dir, so the answer has one; Apache Kafka's is empty.",
    ),
    Difference(
        "DESCRIBE_USER_SCRAM_CREDENTIALS",
        "*",
        r"^CLUSTER_AUTHORIZATION_FAILED results\[.*\]$|^no answer$",
        "CLUSTER_AUTHORIZATION_FAILED results[]",
        "A refusal has the error once, and is always sent. Apache Kafka repeats it for users without names, and does not answer"
        " when all users are asked for (a NullPointerException).",
    ),
    Difference(
        "FETCH",
        "metadata, another cluster",
        r" responses\[topic=__cluster_metadata partitions.*\]$",
        " responses[]",
        "From version 7 on the error stands at the top; no node sends these versions to a controller.",
        listeners="controller",
    ),
    Difference(
        "FETCH",
        "metadata, another cluster",
        "high_watermark=- (.*) records=none",
        r"high_watermark=+ \1 records=null",
        "A version that no node sends to a controller; the error is the same.",
        listeners="controller",
    ),
    Difference(
        "FETCH",
        "metadata, another cluster",
        r"^ok responses\[\]$",
        "ok responses[topic=__cluster_metadata partitions[partition_index=0 INVALID_REQUEST high_watermark=- "
        "diverging_epoch(end_offset=-) current_leader(leader_epoch=-) snapshot_id(end_offset=-) records=none]]",
        "A version that no node sends to a controller is refused; Apache Kafka's answer is empty.",
        listeners="controller",
    ),
)


def reason(key: Key, theirs: str, ours: str) -> Difference | None:
    """The first that covers a cell."""
    return next((each for each in ON_PURPOSE if each.covers(key, theirs, ours)), None)


@dataclass
class Comparison:
    """All cells: equal, different on purpose, different and open."""

    equal: int
    on_purpose: dict[Key, tuple[str, str, Difference]]
    open: dict[Key, tuple[str, str]]


def compare(theirs: dict[Key, str], ours: dict[Key, str]) -> Comparison:
    """Apache Kafka's outcomes beside tidelog's; both must have the same cells."""
    found = Comparison(0, {}, {})
    for key in _same(theirs, ours):
        if theirs[key] == ours[key]:
            found.equal += 1
        elif (why := reason(key, theirs[key], ours[key])) is not None:
            found.on_purpose[key] = theirs[key], ours[key], why
        else:
            found.open[key] = theirs[key], ours[key]
    return found


def _same(theirs: dict[Key, str], ours: dict[Key, str]) -> Iterable[Key]:
    assert theirs.keys() == ours.keys(), sorted(theirs.keys() ^ ours.keys())[:5]
    return theirs
