"""The states of a streams group (KIP-1071), apart from the group: a node's metrics count by them, with or without such groups."""

from __future__ import annotations

from enum import Enum


class StreamsGroupState(Enum):
    """The value is the name that Kafka's tools show."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """The topics of the topology are not all there, or not as they have to be."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
