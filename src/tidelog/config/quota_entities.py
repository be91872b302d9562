"""Client quotas: who may have one, under which keys, and which numbers are limits (KIP-13, 124, 546, 599, 612)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)
"""By the names that requests and records have for them. A user and a client id can be limited together."""
_FRACTION = 1e-6
"""So much above a whole number still is one: limits travel as floating point numbers."""


class QuotaKey(NamedTuple):
    """``most``: the largest limit, for keys that take whole numbers; others take any."""

    name: str
    most: int | None = None

    def problem(self, limit: float) -> str | None:
        """Why this cannot be a limit; None when it can."""
        if not limit > 0:
            return f"{self.name} must be more than 0, and {limit!r} is not. To lift the limit, remove the key."
        if self.most is None:
            return None
        if limit > float(self.most):  # as far as a float tells: Java's Long.MAX_VALUE comes as 2**63
            return f"{self.name} can be {self.most} at most, and {limit!r} is more."
        if math.fmod(limit, 1) > _FRACTION:
            return f"{self.name} must be a whole number, and {limit!r} is not."
        return None


PRODUCER_BYTE_RATE = QuotaKey("producer_byte_rate", 2**63 - 1)
CONSUMER_BYTE_RATE = QuotaKey("consumer_byte_rate", 2**63 - 1)
REQUEST_PERCENTAGE = QuotaKey("request_percentage")
CONTROLLER_MUTATION_RATE = QuotaKey("controller_mutation_rate")
CONNECTION_CREATION_RATE = QuotaKey("connection_creation_rate", 2**31 - 1)

CLIENT_KEYS: Mapping[str, QuotaKey] = {
    key.name: key for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
}
"""Of users, of client ids, and of both together."""
IP_KEYS: Mapping[str, QuotaKey] = {CONNECTION_CREATION_RATE.name: CONNECTION_CREATION_RATE}


def no_such_type(kind: str) -> str:
    """What is wrong with an entity type that has no quotas."""
    return f"There are no quotas of the entity type '{kind}', only of {', '.join(ENTITY_TYPES)}."
