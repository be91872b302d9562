"""The canonical form of an answer: a line of text with what a decision of the authorizer can change.

Kept: error codes at every place, names, authorized operations, states, and whether bulk data and offsets are there. Left out:
texts, times, identifiers, counts of brokers. Topic ids become names. The order of entries does not count. Topics, groups and
transactional ids of other cells (``fresh-N``) are left out, so that a cell has the same outcome in every run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.protocol.framing import decode_response_header
from tidelog.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from tidelog.protocol.primitives import ZERO_UUID
from tidelog.protocol.structure import Structure

NAMES = frozenset(
    {
        "entity_name",
        "entity_type",
        "feature",
        "group_id",
        "group_state",
        "group_type",
        "host_filter",
        "index",
        "key",
        "name",
        "operation",
        "partition",
        "partition_id",
        "partition_index",
        "pattern_type",
        "permission_type",
        "principal",
        "protocol_type",
        "resource_name",
        "resource_type",
        "status_code",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "topic",
        "topic_name",
        "transaction_state",
        "transactional_id",
        "user",
        "vote_granted",
    }
)
SIGNED = frozenset(
    {
        "base_offset",
        "committed_offset",
        "end_offset",
        "high_watermark",
        "lag",
        "leader_epoch",
        "low_watermark",
        "num_partitions",
        "offset",
        "producer_id",
        "replication_factor",
        "start_offset",
        "state_epoch",
    }
)
"""Numbers of which only the sign counts: -1 means unknown."""
PRESENT = frozenset(
    {
        "acquired_records",
        "api_keys",
        "brokers",
        "configs",
        "controllers",
        "finalized_features",
        "mechanisms",
        "nodes",
        "records",
        "state_batches",
        "supported_features",
        "synonyms",
    }
)
"""Lists and bulk data of which only counts whether there is any."""
IGNORED = frozenset({"aborted_transactions", "node_endpoints", "offline_replicas", "record_errors"})
OPERATIONS = re.compile(r"(cluster_|topic_)?authorized_operations")
FRESH = re.compile(r"fresh-(\d+)")


class Canonical:
    """Makes outcomes of one cell: ``number`` is the cell's, ``topics`` the names of topics by id."""

    def __init__(self, number: int, topics: Mapping[bytes, str]) -> None:
        self._number, self._topics = str(number), topics

    def of(self, answer: Structure) -> str:
        """The outcome."""
        return self._struct(answer) or "-"

    def _struct(self, structure: Structure) -> str:
        return " ".join(part for name in type(structure).__slots__ if (part := self._field(name, getattr(structure, name))))

    def _field(self, name: str, value: Any) -> str:
        if name in IGNORED:
            return ""
        if name.endswith("error_code"):
            return f"{name.removesuffix('_code')}={_error(value)}" if name != "error_code" else _error(value)
        if OPERATIONS.fullmatch(name):
            return "" if value == -(1 << 31) else f"operations={_operations(value)}"
        if name == "response_data":
            return f"inside({self._struct(_enveloped(value))})" if value else ""
        if name == "topic_id":
            return "" if value == ZERO_UUID else f"id={self._name(self._topics.get(bytes(value), '?'))}"
        if name == "is_internal":
            return "internal" if value else ""
        if name in PRESENT:
            return f"{name}={'null' if value is None else 'some' if value else 'none'}"
        if name in SIGNED:
            return f"{name}={'-' if value < 0 else '+'}"
        if isinstance(value, Structure):
            inside = self._struct(value)
            return f"{name}({inside})" if inside else ""
        if isinstance(value, list) and (not value or isinstance(value[0], Structure)):
            return f"{name}[{', '.join(self._entries(value))}]"
        return f"{name}={self._name(value)}" if name in NAMES else ""

    def _entries(self, entries: list[Structure]) -> list[str]:
        found = sorted(self._struct(each) for each in entries)
        return [each for each in found if not self._foreign(each)]

    def _foreign(self, text: str) -> bool:
        return FRESH.search(text) is not None

    def _name(self, value: Any) -> str:
        if isinstance(value, list):
            return f"({' '.join(sorted(map(str, value)))})"
        if isinstance(value, bool):
            return "yes" if value else "no"
        text = "null" if value is None else str(value)
        return FRESH.sub(lambda found: "fresh" if found[1] == self._number else found[0], text)


def _enveloped(data: bytes) -> Structure:
    """The answer inside an Envelope; the matrix forwards ListPartitionReassignments only."""
    _, position = decode_response_header(data, True)
    return ListPartitionReassignmentsResponse.decode(memoryview(data)[position:], 0)


def _error(code: int) -> str:
    return "ok" if code == 0 else f"{code}" if code not in ErrorCode._value2member_map_ else ErrorCode(code).name


def _operations(bits: int) -> str:
    return f"{{{','.join(str(bit) for bit in range(32) if bits >> bit & 1)}}}"
